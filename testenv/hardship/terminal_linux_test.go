package hardship

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/contract/report"
)

// terminal is a pseudoterminal. Closing master hangs up.
type terminal struct{ master, slave *os.File }

func newTerminal(t *testing.T) terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() }) // closed already, where the test hangs up
	raw, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	if controlErr := raw.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}); controlErr != nil || err != nil {
		t.Fatal(controlErr, err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return terminal{master, slave}
}

// start runs a command like a shell on this terminal: its leader, in its foreground. Its output is read
// until it is hung up.
func (y terminal) start(t *testing.T, c *exec.Cmd) {
	t.Helper()
	c.Stdin, c.Stdout, c.Stderr = y.slave, y.slave, y.slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := y.slave.Close(); err != nil {
		t.Fatal(err)
	}
	go func() {
		buffer := make([]byte, 4096)
		for err := error(nil); err == nil; {
			_, err = y.master.Read(buffer)
		}
	}()
}

func (y terminal) hangUp(t *testing.T) {
	t.Helper()
	if err := y.master.Close(); err != nil {
		t.Fatal(err)
	}
}

func (y terminal) press(t *testing.T, key string) {
	t.Helper()
	if _, err := y.master.WriteString(key); err != nil {
		t.Fatal(err)
	}
}

func noopDocument(name, spec string) string {
	return fmt.Sprintf("---\napiVersion: example.com/v1\nkind: Noop\nmetadata: {name: %s}\nspec: {provider: test, %s}\n", name, spec)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(waitLimit)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline.C:
			t.Fatalf("not reached in time: %s", what)
		case <-tick.C:
		}
	}
}

// TestTerminal: a run loses its terminal, or a key is pressed on it, in the middle of a change. The plugin gets none of these signals: it has a session of its own.
func TestTerminal(t *testing.T) {
	t.Parallel()
	hangUp := func(t *testing.T, y terminal, _ *os.Process) { t.Helper(); y.hangUp(t) }
	ctrlC := func(t *testing.T, y terminal, _ *os.Process) { t.Helper(); y.press(t, "\x03") }
	terminate := func(t *testing.T, _ terminal, host *os.Process) {
		t.Helper()
		if err := host.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		happens func(t *testing.T, y terminal, host *os.Process)
		ignored string // an ignored signal, as with nohup
		exit    int
	}{
		"lost":                 {hangUp, "", report.ExitInterrupted},
		"Ctrl-C":               {ctrlC, "", report.ExitInterrupted},
		"SIGTERM":              {terminate, "", report.ExitInterrupted},
		"lost, under nohup":    {hangUp, "HUP", report.ExitOK},
		"SIGTERM, under nohup": {terminate, "HUP", report.ExitInterrupted},
	} {
		for _, output := range []string{"text", "json"} {
			t.Run(name+", "+output, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				b.makeDirectories(t)
				gate := filepath.Join(b.root, "gate")
				hang := "apply: hang"
				if tt.exit == report.ExitOK { // it is tried again, a second later, until there is a gate
					hang = "apply: retry, applyUntil: gate"
				}
				put(t, b.stream, noopDocument("a", "touch: [one, two], "+hang)+noopDocument("b", "touch: [three]"))
				ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
				defer cancel()
				c := b.command(ctx, "apply", "--path", b.stream, "--root", b.root, "--output", output)
				if tt.ignored != "" {
					c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", "trap '' " + tt.ignored + `; exec "$@"`, "sh"}, c.Args...)
				}
				y := newTerminal(t)
				y.start(t, c)
				eventually(t, "the change has begun", func() bool {
					data, err := os.ReadFile(filepath.Join(b.run, "report.json"))
					return err == nil && strings.Contains(string(data), "file:one")
				})
				tt.happens(t, y, c.Process)
				put(t, gate, "")
				got := result{code: exit(t, c, c.Wait())}
				r, err := b.report()
				if err == nil {
					err = agrees(r, got.code)
				}
				if err != nil || got.code != tt.exit {
					t.Errorf("exit %d, want %d; %v", got.code, tt.exit, err)
				}
				for file, there := range map[string]bool{"one": true, "two": tt.exit == report.ExitOK, "three": tt.exit == report.ExitOK} {
					if _, err := os.Stat(filepath.Join(b.root, file)); (err == nil) != there {
						t.Errorf("%s: want it to be there: %v (%v)", file, there, err)
					}
				}
				if change := r.Documents[0].Changes[0]; change.Outcome != report.Changed {
					t.Errorf("the change in progress: %+v", change)
				}
				left, err := leftovers(b.state, b.run, b.tmp)
				if err != nil || len(left) > 0 {
					t.Errorf("%q (%v)", left, err)
				}
			})
		}
	}
}

// TestClosedOutput: standard streams that cannot be written, or are closed, do not affect a run.
func TestClosedOutput(t *testing.T) {
	t.Parallel()
	want := undisturbed(t)
	for name, redirected := range map[string]string{
		"a full disk":   `exec "$@" >/dev/full 2>&1`,
		"closed":        `exec "$@" <&- >&- 2>&-`,
		"closed reader": `("$@"; echo $? >"$CODE") 2>&1 | true; exit "$(cat "$CODE")"`,
	} {
		for _, output := range []string{"text", "json"} {
			t.Run(name+", "+output, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				edition := b.begin(t, true, want)
				put(t, b.stream, stream(edition))
				c := b.command(t.Context(), "--log-level", "debug", "apply", "--path", b.stream, "--root", b.root, "--output", output)
				c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", redirected, "sh"}, c.Args...)
				c.Env = append(c.Env, "CODE="+filepath.Join(b.dir, "code"))
				before := b.lastRun()
				got := result{code: exit(t, c, c.Run())}
				if got.code != report.ExitOK {
					t.Errorf("%s", got)
				}
				b.intact(t, want, edition)
				b.checkReport(t, before, got, true)
				b.prepared(t, want, edition)
			})
		}
	}
}
