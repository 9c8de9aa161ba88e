package nodes_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const clockEnv = "MACHINEADM_NODES_TEST_CLOCK"

// TestClockCalls runs within a node and makes every call that sets the clock. Each would leave the clock as it is: if one
// is not refused, the machine's clock has been set.
func TestClockCalls(t *testing.T) {
	if os.Getenv(clockEnv) == "" {
		return
	}
	var now unix.Timespec
	for name, call := range map[string]func() error{
		"clock_settime": func() error {
			if err := unix.ClockGettime(unix.CLOCK_REALTIME, &now); err != nil {
				return err
			}
			return unix.ClockSettime(unix.CLOCK_REALTIME, &now)
		},
		"settimeofday": func() error {
			tv := unix.NsecToTimeval(time.Now().UnixNano())
			return unix.Settimeofday(&tv)
		},
		"adjtimex": func() error {
			_, err := unix.Adjtimex(&unix.Timex{Modes: unix.ADJ_OFFSET})
			return err
		},
		"clock_adjtime": func() error {
			_, err := unix.ClockAdjtime(unix.CLOCK_REALTIME, &unix.Timex{Modes: unix.ADJ_OFFSET})
			return err
		},
	} {
		if err := call(); err != unix.EPERM { //nolint:errorlint // the system call's own error
			t.Errorf("%s: %v, want %v", name, err, unix.EPERM)
		}
	}
}

// No process in a node sets the machine's clock, neither a service with CAP_SYS_TIME nor a command of the test.
func TestTimeDaemonLeavesTheClock(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	for _, suite := range nodes.Suites() {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			n := nodes.Boot(t, nodes.Options{Suite: suite, TimeDaemon: true})
			require.NoError(t, n.CopyIn(t.Context(), os.Args[0], "/root/calls", 0o755))
			before := clockOffset(t)

			service := []string{"systemd-run", "--quiet", "--wait", "--pipe", "--setenv=" + clockEnv + "=1"}
			bounds := n.MustExec(t, append(service, "grep", "CapBnd", "/proc/self/status")...).Stdout
			require.NotZero(t, capabilities(t, bounds)&(1<<unix.CAP_SYS_TIME), "CAP_SYS_TIME of a service")
			bounds = n.MustExec(t, "grep", "CapBnd", "/proc/self/status").Stdout
			require.Zero(t, capabilities(t, bounds)&(1<<unix.CAP_SYS_TIME), "CAP_SYS_TIME of a command")

			calls := []string{"/root/calls", "-test.run=^TestClockCalls$", "-test.v"}
			n.MustExec(t, append(service, calls...)...)
			n.MustExec(t, append([]string{"env", clockEnv + "=1"}, calls...)...)
			for _, set := range []string{`date --set="$(date --rfc-3339=ns)"`, `timedatectl set-time "$(date '+%F %T')"`} {
				for _, via := range [][]string{service, nil} {
					got, err := n.Exec(t.Context(), append(via, "sh", "-c", set)...)
					require.NoError(t, err)
					require.NotZero(t, got.ExitCode, "%q %s: %s", via, set, got.Stdout)
				}
			}
			require.InDelta(t, before.Seconds(), clockOffset(t).Seconds(), 0.05, "the machine's clock was set")
		})
	}
}

func capabilities(t *testing.T, line string) (mask uint64) {
	t.Helper()
	_, err := fmt.Sscanf(strings.TrimSpace(line), "CapBnd: %x", &mask)
	require.NoError(t, err, line)
	return mask
}

// clockOffset is the distance between the machine's clock and one that no process can set, and that is slewed with it. A process that
// is suspended between the readings reads again.
func clockOffset(t *testing.T) time.Duration {
	t.Helper()
	reading := func(clock int32) int64 {
		var at unix.Timespec
		require.NoError(t, unix.ClockGettime(clock, &at))
		return at.Nano()
	}
	for {
		before := reading(unix.CLOCK_BOOTTIME)
		wall := reading(unix.CLOCK_REALTIME)
		if after := reading(unix.CLOCK_BOOTTIME); time.Duration(after-before) < time.Millisecond {
			return time.Duration(wall - before)
		}
	}
}
