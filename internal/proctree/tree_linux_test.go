package proctree

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	testify "github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/require"
)

const (
	forever = `while :; do sleep 1; done`
	// daemonize leaves the program's session, has init (or a subreaper) for its parent, and ignores what can be ignored.
	daemonize = `setsid sh -c '(trap "" TERM INT HUP QUIT; : >"$READY"; ` + forever + `) &'`
	ready     = `: >"$READY"; `
)

func script(s string) []string { return []string{"/bin/sh", "-c", s} }

// TestNothingIsLeft ends each tree in each way that leaves the host time to clean up.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	require.Tool(t, "setsid")
	// Every process of this one lives for a moment, has its own session, and starts the next.
	hop := filepath.Join(t.TempDir(), "hop")
	testify.NoError(t, os.WriteFile(hop, []byte(`setsid sh "$0" & `+ready), 0o600))
	trees := map[string]string{
		"lone program":     ready + forever,
		"ignores SIGTERM":  `trap "" TERM; ` + ready + forever,
		"daemon":           daemonize + "; " + forever,
		"breeder":          ready + `while :; do sleep 1000 & sleep 0.01; done`,
		"breeding daemons": ready + `while :; do setsid sleep 1000 & sleep 0.01; done`,
		"stopped":          ready + `kill -STOP $$; ` + forever,
		"hops and stays":   `sh "` + hop + `"; ` + forever,
	}
	ends := map[string]func(t *testing.T, h *host){
		"Kill": func(t *testing.T, h *host) {
			testify.Equal(t, "ok", h.tell("kill"))
			testify.Equal(t, "137 ok", h.tell("wait"))
		},
		"program killed": func(t *testing.T, h *host) {
			signalTo(t, h.program, syscall.SIGKILL)
			testify.Equal(t, "137 ok", h.tell("wait"))
		},
		"host cleans up": func(t *testing.T, h *host) { testify.Equal(t, "ok", h.tell("kill descendants")) },
	}
	for tree, command := range trees {
		for end, do := range ends {
			t.Run(tree+", "+end, func(t *testing.T) {
				h := startHost(t, nil, script(command)...)
				do(t, h)
				h.expectAlone(t)
				h.endHost()
			})
		}
	}
}

func (h *host) endHost() {
	h.t.Helper()
	testify.NoError(h.t, h.stdin.Close())
	testify.NoError(h.t, h.cmd.Wait())
}

// expectAlone: nothing is left when a call returns, not some time later.
func (h *host) expectAlone(t *testing.T) {
	t.Helper()
	left := slices.DeleteFunc(living(t, h.mark), func(pid int) bool { return pid == h.cmd.Process.Pid })
	testify.Empty(t, left)
}

// TestProgramDiesWithTheHost: on every way that a host can end, and only then. The thread that called Start ended long before.
func TestProgramDiesWithTheHost(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *host){"killed": (*host).killHost, "returns": (*host).endHost} {
		t.Run(name, func(t *testing.T) {
			h := startHost(t, nil, script(ready+"exec cat")...)
			testify.Equal(t, "echo ok", h.tell("echo"))
			end(h)
			allGone(t, h.mark)
		})
	}
}

// TestOrphansEnd: the orphans of a running program are killed on demand, and when any program ends.
func TestOrphansEnd(t *testing.T) {
	t.Parallel()
	require.Root(t) // only root reads the environment of the host, which turns core dumps off
	require.Tool(t, "setsid")
	h := startHost(t, nil, script(daemonize+"; "+daemonize+"; exec cat")...)
	testify.Equal(t, "echo ok", h.tell("echo")) // so both session leaders have ended
	testify.Equal(t, "killed true ok", h.tell("kill orphans"))
	testify.ElementsMatch(t, []int{h.cmd.Process.Pid, h.program}, living(t, h.mark))
	testify.Equal(t, "echo ok", h.tell("echo"))
	testify.Equal(t, "ok", h.tell("kill descendants"))
	h.endHost()
}

// TestOrphanInTheGroupOfTheHost ends like any other.
func TestOrphanInTheGroupOfTheHost(t *testing.T) {
	t.Parallel()
	require.Root(t) // likewise
	self, err := os.Executable()
	testify.NoError(t, err)
	h := startHost(t, nil, script("("+roleVariable+`=join "`+self+`" $PPID &); exec cat`)...)
	testify.Equal(t, "echo ok", h.tell("echo"))
	// The third one has no environment, and so no mark, for the moment in which it becomes another program.
	testify.Eventually(t, func() bool { return len(living(t, h.mark)) == 3 }, 10*time.Second, time.Millisecond)
	testify.Equal(t, "killed true ok", h.tell("kill orphans"))
	testify.ElementsMatch(t, []int{h.cmd.Process.Pid, h.program}, living(t, h.mark))
	h.endHost()
}

// TestDeadOrphansAreCollected while the program that left them runs.
func TestDeadOrphansAreCollected(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil, script(ready+"(true &); (true &); (true &); exec cat")...)
	testify.Equal(t, "echo ok", h.tell("echo"))
	eventually(t, "the program is the only child", func() bool {
		children, err := childrenOf(h.cmd.Process.Pid)
		testify.NoError(t, err)
		return slices.Equal(children, []int{h.program})
	})
	testify.Equal(t, "echo ok", h.tell("echo"))
	h.endHost()
}

// TestOtherCgroup: a service manager puts what it starts into a control group of its own. Such an orphan is spared, with
// its process group.
func TestOtherCgroup(t *testing.T) {
	require.Root(t)
	t.Parallel()
	require.Tool(t, "setsid")
	cgroup := "/sys/fs/cgroup"
	if _, err := os.Stat(cgroup + "/unified/cgroup.procs"); err == nil {
		cgroup += "/unified"
	}
	cgroup, err := os.MkdirTemp(cgroup, "proctree-") //nolint:usetesting // made by the kernel, which removes it by rmdir alone
	testify.NoError(t, err)
	t.Cleanup(func() { eventually(t, "the control group is gone", func() bool { return os.Remove(cgroup) == nil }) })
	h := startHost(t, nil, script(`setsid sh -c '(echo 0 >"`+cgroup+`/cgroup.procs"; `+ready+forever+`) & sleep 1000 &'; exec cat`)...)
	testify.Equal(t, "echo ok", h.tell("echo")) // so the session leader has ended, and what it started is orphaned
	t.Cleanup(func() {
		h.endHost()
		testify.NoError(t, os.WriteFile(cgroup+"/cgroup.kill", []byte("1"), 0o600))
		allGone(t, h.mark)
	})
	for _, order := range []string{"kill orphans", "kill descendants"} {
		testify.Contains(t, []string{"killed true ok", "ok"}, h.tell(order))
		procs, err := os.ReadFile(cgroup + "/cgroup.procs")
		testify.NoError(t, err)
		left := slices.DeleteFunc(living(t, h.mark), func(pid int) bool {
			return pid == h.cmd.Process.Pid || pid == h.program || inCgroup(string(procs), pid)
		})
		testify.Empty(t, left, order)
		testify.NotEmpty(t, procs, order)
	}
}

func TestOtherCgroupByName(t *testing.T) {
	t.Parallel()
	const own = "4:memory:/a\n1:name=systemd:/b.service\n0::/b.service\n"
	for its, want := range map[string]bool{
		own: false,
		"4:memory:/a\n1:name=systemd:/c.scope\n0::/c.scope\n":   true,
		"4:memory:/a\n1:name=systemd:/b.service\n0::/c.scope\n": true,
		"4:memory:/\n1:name=systemd:/\n0::/b.service\n":         false, // exiting
		"0::/b.service/below\n":                                 true,
		"":                                                      false,
	} {
		testify.Equal(t, want, otherCgroup(own, its), its)
	}
}

func inCgroup(procs string, pid int) bool {
	for line := range strings.Lines(procs) {
		if strings.TrimSpace(line) == strconv.Itoa(pid) {
			return true
		}
	}
	return false
}

// TestUnprivileged runs the tests again as a user without any rights, with a host that has turned core dumps off.
func TestUnprivileged(t *testing.T) {
	require.Root(t)
	t.Parallel()
	// Under a strict umask the test binary is its builder's alone.
	testify.NoError(t, os.Chmod("/proc/self/exe", 0o755)) //nolint:gosec // that is the point
	for _, test := range []string{
		"TestNothingIsLeft/daemon,_host_cleans_up", "TestProgramDiesWithTheHost", "TestOpenFile", "TestScript", "TestDescriptors",
		"TestNoCoreDumps", "TestLock",
	} {
		cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run", "^"+strings.ReplaceAll(test, "/", "$/^")+"$")
		cmd.Env = append(os.Environ(), "TMPDIR=/tmp")
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		testify.NoError(t, err, "%s", out)
		testify.Contains(t, string(out), "--- PASS: "+test)
	}
}

// TestLock: what survives the SIGKILL of a host holds the lock that it inherited.
func TestLock(t *testing.T) {
	t.Parallel()
	require.Tool(t, "setsid")
	lock, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	testify.NoError(t, err)
	testify.NoError(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	h := startHost(t, []*os.File{lock}, script(daemonize+"; "+forever)...)
	testify.NoError(t, lock.Close())
	h.killHost()
	eventually(t, "the program is gone", func() bool { return !slices.Contains(living(t, h.mark), h.program) })
	free := func() bool {
		file, err := os.Open(lock.Name())
		testify.NoError(t, err)
		defer func() { testify.NoError(t, file.Close()) }()
		return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
	}
	testify.False(t, free())
	eventually(t, "the lock is free", func() bool {
		for _, pid := range living(t, h.mark) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				testify.ErrorIs(t, err, syscall.ESRCH) // it ended meanwhile
			}
		}
		return free()
	})
	allGone(t, h.mark)
}
