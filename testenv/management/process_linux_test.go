package management

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const holderVariable = "MACHINEADM_TEST_HOLDER"

// TestHolder is the process that TestProcessesEnd kills.
func TestHolder(t *testing.T) {
	if os.Getenv(holderVariable) == "" {
		return
	}
	fmt.Fprintln(os.Stdout, start(t, t.TempDir(), "/bin/sleep", nil, "1h").PID())
	<-t.Context().Done()
}

// TestProcessesEnd: what a test has started does not survive a test binary that is killed.
func TestProcessesEnd(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestHolder$")
	cmd.Env = append(os.Environ(), holderVariable+"=1", "TMPDIR="+t.TempDir())
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var pid int
	_, err = fmt.Fscan(bufio.NewReader(output), &pid)
	require.NoError(t, err)
	process, err := unix.PidfdOpen(pid, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Close(process)) }()
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	ended, err := unix.Poll([]unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}, int(time.Minute.Milliseconds()))
	require.NoError(t, err)
	require.Equal(t, 1, ended)
}

// TestStop: a program can end in its own way, its output is kept, and its exit status does not fail the test.
func TestStop(t *testing.T) {
	p := start(t, t.TempDir(), "/bin/sh", []string{"WORD=stopped"}, "-c", `trap 'echo "$WORD"; exit 3' TERM; echo up; while :; do :; done`)
	require.Eventually(t, func() bool { return string(p.tail(t)) == "up\n" }, time.Minute, time.Millisecond)
	p.Stop(t)
	require.Equal(t, "up\nstopped\n", string(p.tail(t)))
	require.ErrorContains(t, p.err, "exit status 3")
}
