package proctree

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/require"
)

const (
	forever = `while :; do sleep 1; done`
	// daemonize leaves the program's session, has init (or a subreaper) for its parent, and ignores what can be ignored.
	daemonize = `setsid sh -c '(trap "" TERM INT HUP QUIT; : >"$READY"; ` + forever + `) &'`
)

// trees are programs that would like to leave something behind. Each makes the file $READY.
func trees(t *testing.T) map[string][]string {
	t.Helper()
	// Every process of this one lives for a moment, has its own session, and starts the next.
	hop := filepath.Join(t.TempDir(), "hop")
	if err := os.WriteFile(hop, []byte(`setsid sh "$0" & : >"$READY"`), 0o600); err != nil {
		t.Fatal(err)
	}
	script := func(s string) []string { return []string{"/bin/sh", "-c", s} }
	return map[string][]string{
		"lone program":     script(`: >"$READY"; ` + forever),
		"ignores SIGTERM":  script(`trap "" TERM; : >"$READY"; ` + forever),
		"daemon":           script(daemonize + `; ` + forever),
		"breeder":          script(`: >"$READY"; while :; do sleep 1000 & sleep 0.01; done`),
		"breeding daemons": script(`: >"$READY"; while :; do setsid sleep 1000 & sleep 0.01; done`),
		"stopped":          script(`: >"$READY"; kill -STOP $$; ` + forever),
		"hops and stays":   script(`sh "` + hop + `"; ` + forever),
	}
}

// TestNothingIsLeft ends each tree in each way.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	require.Tool(t, "setsid")
	ends := map[string]func(t *testing.T, h *host){
		"host killed":  func(_ *testing.T, h *host) { h.killHost() },
		"host returns": func(_ *testing.T, h *host) { h.endHost() },
		"Kill": func(t *testing.T, h *host) {
			expect(t, h.tell("kill"), "ok")
			h.expectStatus(t)
		},
		"program killed": func(t *testing.T, h *host) {
			signalTo(t, h.program, syscall.SIGKILL)
			h.expectStatus(t)
		},
		"guard killed, host cleans up": func(t *testing.T, h *host) {
			h.signalGuard(t, syscall.SIGKILL)
			h.cleanUp(t)
		},
		"host cleans up": func(t *testing.T, h *host) { h.cleanUp(t) },
	}
	for tree, command := range trees(t) {
		for end, do := range ends {
			t.Run(tree+", "+end, func(t *testing.T) {
				h := startHost(t, nil, command...)
				do(t, h)
				if h.cmd.ProcessState == nil {
					h.endHost()
				}
				allGone(t, h.mark)
				h.guardGone()
			})
		}
	}
}

func (h *host) endHost() {
	h.t.Helper()
	if err := h.stdin.Close(); err != nil {
		h.t.Fatal(err)
	}
	if err := h.cmd.Wait(); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) signalGuard(t *testing.T, s syscall.Signal) {
	t.Helper()
	signalTo(t, h.guard, s)
}

// cleanUp: KillDescendants promises that nothing is left when it returns, not some time later.
func (h *host) cleanUp(t *testing.T) {
	t.Helper()
	expect(t, h.tell("kill descendants"), "ok")
	h.expectAlone(t)
}

// expectStatus: the guard goes last, and says that the program was killed.
func (h *host) expectStatus(t *testing.T) {
	t.Helper()
	expect(t, h.tell("wait"), "137 ok")
	h.expectAlone(t)
}

func (h *host) expectAlone(t *testing.T) {
	t.Helper()
	if left := slices.DeleteFunc(living(t, h.mark), func(pid int) bool { return pid == h.cmd.Process.Pid }); len(left) > 0 {
		t.Errorf("processes %d are left", left)
	}
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestProgramOutlivesThread: the host started the guard from a thread that is gone (containOnDyingThread), which is where
// Pdeathsig on the guard would have ended it, and the program with it.
func TestProgramOutlivesThread(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil, "/bin/sh", "-c", `: >"$READY"; exec cat`)
	expect(t, h.tell("echo"), "echo ok")
	h.endHost()
	allGone(t, h.mark)
}

// TestGuardLeavesSignalsToTheHost: a program whose guard is asked to end goes on serving.
func TestGuardLeavesSignalsToTheHost(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil, "/bin/sh", "-c", `: >"$READY"; exec cat`)
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		h.signalGuard(t, s)
		for range 20 { // each a round trip through the program, which the guard would have ended meanwhile
			expect(t, h.tell("echo"), "echo ok")
		}
	}
	h.endHost()
	allGone(t, h.mark)
}

// TestProgramExitLeavesChild: the status arrives only when the child that was left behind is gone.
func TestProgramExitLeavesChild(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil, "/bin/sh", "-c", daemonize+`; while ! [ -e "$READY" ]; do sleep 0.01; done; exit 7`)
	expect(t, h.tell("wait"), "7 ok")
	h.expectAlone(t)
	h.endHost()
}

// TestGuardKilled: the program dies with its guard, whether or not the host does anything.
func TestGuardKilled(t *testing.T) {
	t.Parallel()
	h := startHost(t, nil, "/bin/sh", "-c", `: >"$READY"; exec cat`)
	h.signalGuard(t, syscall.SIGKILL)
	eventually(t, "the program is gone", func() bool { return !slices.Contains(living(t, h.mark), h.program) })
	h.endHost()
	allGone(t, h.mark)
}

// TestUnprivileged runs the tests again as a user without any rights, with a host that has turned core dumps off.
func TestUnprivileged(t *testing.T) {
	require.Root(t)
	t.Parallel()
	// Under a strict umask the test binary is its builder's alone.
	if err := os.Chmod("/proc/self/exe", 0o755); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	tests := []string{
		"TestNothingIsLeft/daemon,_host_killed", "TestProgramOutlivesThread", "TestGuardKilled", "TestProgramExitLeavesChild",
		"TestOpenFile", "TestScript", "TestDescriptors", "TestNoCoreDumps", "TestLock",
	}
	for _, test := range tests {
		cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run", "^"+strings.ReplaceAll(test, "/", "$/^")+"$")
		cmd.Env = append(os.Environ(), "TMPDIR=/tmp")
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: "+test) {
			t.Errorf("%s: %v\n%s", test, err, out)
		}
	}
}

// TestLock: the lock on an inherited descriptor is free only when the last process of the tree is gone, also when that
// one has let go of it.
func TestLock(t *testing.T) {
	t.Parallel()
	require.Tool(t, "setsid")
	for name, script := range map[string]string{
		"all hold it": daemonize + "; " + forever,
		"nobody does": "exec 3>&-; " + daemonize + "; " + forever,
	} {
		t.Run(name, func(t *testing.T) {
			lock, err := os.Create(filepath.Join(t.TempDir(), "lock"))
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
				t.Fatal(err)
			}
			h := startHost(t, []*os.File{lock}, "/bin/sh", "-c", script)
			if err := lock.Close(); err != nil {
				t.Fatal(err)
			}
			if err := h.tryLock(lock.Name()); !errors.Is(err, unix.EWOULDBLOCK) {
				t.Fatalf("the tree does not hold the lock: %v", err)
			}
			h.killHost()
			eventually(t, "the lock is free", func() bool { return h.tryLock(lock.Name()) == nil })
			if left := living(t, h.mark); len(left) > 0 {
				t.Errorf("the lock is free, but processes %d are left, the program was %d", left, h.program)
			}
			allGone(t, h.mark)
		})
	}
}

func (h *host) tryLock(path string) error {
	h.t.Helper()
	file, err := os.Open(path)
	if err != nil {
		h.t.Fatal(err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	return errors.Join(err, file.Close())
}
