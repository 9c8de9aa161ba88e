// Package nodestest has the checks that every kind of node passes, for one node that a test has booted.
package nodestest

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/testenv/nodes"
)

// Exec checks arguments, outputs, stdin and exit codes.
func Exec(t *testing.T, n *nodes.Node) {
	for _, c := range []struct {
		name   string
		argv   []string
		stdout string
		stderr string
		code   int
	}{
		{"success", []string{"true"}, "", "", 0},
		{"exit status", []string{"sh", "-c", "exit 42"}, "", "", 42},
		{"separate outputs", []string{"sh", "-c", "echo out; echo err >&2; exit 3"}, "out\n", "err\n", 3},
		{"arguments are not split", []string{"printf", "%s|", "a b", "", "$HOME", "*"}, "a b||$HOME|*|", "", 0},
		{"an argument like an option", []string{"echo", "--help-me"}, "--help-me\n", "", 0},
		{"stdin is empty", []string{"cat"}, "", "", 0},
		{"working directory", []string{"pwd"}, "/\n", "", 0},
		{"killed by a signal", []string{"sh", "-c", "kill -TERM $$"}, "", "", 143},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := n.Exec(t.Context(), c.argv...)
			if err != nil {
				t.Fatal(err)
			}
			if want := (nodes.Result{Stdout: c.stdout, Stderr: c.stderr, ExitCode: c.code}); r != want {
				t.Errorf("got %+v, want %+v", r, want)
			}
		})
	}
	t.Run("no such program", func(t *testing.T) {
		if r, err := n.Exec(t.Context(), "no-such-program"); err != nil || r.ExitCode != 127 {
			t.Errorf("exit %d, %v; want 127", r.ExitCode, err)
		}
	})
	t.Run("not executable", func(t *testing.T) {
		if r, err := n.Exec(t.Context(), "/etc/passwd"); err != nil || r.ExitCode != 126 {
			t.Errorf("exit %d, %v; want 126", r.ExitCode, err)
		}
	})
	t.Run("no command", func(t *testing.T) {
		if _, err := n.Exec(t.Context()); err == nil {
			t.Error("no error")
		}
	})
}

// ExecIsInside checks that a command is inside the node in every respect, and what may outlive it.
func ExecIsInside(t *testing.T, n *nodes.Node) {
	t.Run("environment", func(t *testing.T) {
		got := strings.Fields(n.MustExec(t, "env").Stdout)
		slices.Sort(got)
		want := []string{"HOME=/root", "LANG=C.UTF-8", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=dumb"}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
	t.Run("namespaces of PID 1", func(t *testing.T) {
		for _, ns := range []string{"mnt", "uts", "ipc", "net", "pid", "cgroup"} {
			self := n.MustExec(t, "readlink", "/proc/self/ns/"+ns).Stdout
			if init := n.MustExec(t, "readlink", "/proc/1/ns/"+ns).Stdout; self != init {
				t.Errorf("%s namespace %q, PID 1 has %q", ns, self, init)
			}
		}
		const bounding = "sed -n s/^CapBnd://p /proc/%/status"
		ofInit := n.MustExec(t, "sh", "-c", strings.ReplaceAll(bounding, "%", "1")).Stdout
		if self := n.MustExec(t, "sh", "-c", strings.ReplaceAll(bounding, "%", "self")).Stdout; self != ofInit {
			t.Errorf("capabilities %q, PID 1 has %q", self, ofInit)
		}
		if group := n.MustExec(t, "sed", "-n", "s/^0:://p", "/proc/self/cgroup").Stdout; !strings.HasPrefix(group, "/testenv-exec-") {
			t.Errorf("control group as the node sees it: %q", group)
		}
	})
	t.Run("a daemon is left", func(t *testing.T) { // it keeps running, as after a login
		n.MustExec(t, "sh", "-c", "setsid sleep 98764 >/dev/null 2>&1 &")
		n.MustExec(t, "timeout", "600", "sh", "-c", "until pgrep -f '^sleep 98764'; do sleep 0.05; done")
	})
	t.Run("a daemon holds stdout", func(t *testing.T) {
		if _, err := n.Exec(t.Context(), "sh", "-c", "setsid sleep 98763 &"); err == nil || !strings.Contains(err.Error(), "holds its stdout") {
			t.Errorf("error %v", err)
		}
	})
}

// ExecInput checks stdin: all of it arrives, none of it need be read.
func ExecInput(t *testing.T, n *nodes.Node) {
	sent := strings.Repeat("0123456789", 200_000)
	r, err := n.ExecInput(t.Context(), strings.NewReader(sent), "cat")
	if err != nil || r.Stdout != sent {
		t.Errorf("%d of %d bytes came back, %v", len(r.Stdout), len(sent), err)
	}
	if r, err := n.ExecInput(t.Context(), strings.NewReader(sent), "head", "-c", "5"); err != nil || r.Stdout != "01234" {
		t.Errorf("a command that reads the beginning alone: %q, %v", r.Stdout, err)
	}
	broken := errors.New("broken")
	if _, err := n.ExecInput(t.Context(), failing{broken}, "cat"); !errors.Is(err, broken) {
		t.Errorf("a stdin that cannot be read: error %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// ExecAtOnce checks that commands do not wait for one another, least of all for one that does not read its stdin.
func ExecAtOnce(t *testing.T, n *nodes.Node) {
	ctx, cancel := context.WithCancel(t.Context())
	stuck := make(chan error, 1)
	go func() {
		_, err := n.ExecInput(ctx, strings.NewReader(strings.Repeat("x", 4<<20)), "sh", "-c", "touch /run/stuck; exec sleep 600")
		stuck <- err
	}()
	n.MustExec(t, "sh", "-c", "until test -e /run/stuck; do sleep 0.05; done; rm /run/stuck")
	// Each waits for the one after it, so they have to run at the same time.
	const many = 4
	results := make(chan error, many)
	for i := range many {
		go func() {
			_, err := n.Exec(t.Context(), "sh", "-c", `touch /run/turn-$1; until test -e /run/turn-$2; do sleep 0.05; done`,
				"sh", string(rune('a'+i)), string(rune('a'+(i+1)%many)))
			results <- err
		}()
	}
	for range many {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	cancel()
	if err := <-stuck; !errors.Is(err, context.Canceled) {
		t.Errorf("the command that does not read: error %v", err)
	}
}

// ExecCancel checks that a command's whole tree ends when its context does, and that the node is not affected.
func ExecCancel(t *testing.T, n *nodes.Node) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := n.Exec(ctx, "sh", "-c", "setsid sleep 98765 & touch /run/started; wait")
		ended <- err
	}()
	n.MustExec(t, "sh", "-c", "until test -e /run/started && pgrep -f '^sleep 98765'; do sleep 0.05; done")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	if r, err := n.Exec(t.Context(), "pgrep", "-f", "^sleep 98765"); err != nil || r.ExitCode != 1 {
		t.Errorf("the command's child is still there: exit %d, %q, %v", r.ExitCode, r.Stdout, err)
	}
}

// Copy checks CopyIn and CopyOut: contents, modes, replacement and what is refused.
func Copy(t *testing.T, n *nodes.Node) {
	content := make([]byte, 1<<20)
	for i := range content {
		content[i] = byte(i * 7)
	}
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		mode fs.FileMode
		stat string
	}{
		{"/opt/new/directory/with space/file", 0o755, "755 root"},
		{"/root/secret", 0o600, "600 root"},
		{"/root/secret", 0o640, "640 root"}, // replaced
		{"/usr/local/bin/setuid", 0o755 | fs.ModeSetuid, "4755 root"},
		{"/root/-r", 0o644, "644 root"},
	} {
		if err := n.CopyIn(t.Context(), source, c.path, c.mode); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(n.MustExec(t, "stat", "-c", "%a %U", c.path).Stdout); got != c.stat {
			t.Errorf("%s: %s, want %s", c.path, got, c.stat)
		}
		back, err := n.CopyOut(t.Context(), c.path)
		if err != nil || !bytes.Equal(back, content) {
			t.Errorf("%s: %d bytes came back, %v", c.path, len(back), err)
		}
	}
	if got := n.MustExec(t, "ls", "-A", "/opt/new/directory/with space").Stdout; got != "file\n" {
		t.Errorf("left beside the copy: %q", got)
	}
	if _, err := n.CopyOut(t.Context(), "/no/such/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("copy of a missing file: %v", err)
	}
	if _, err := n.CopyOut(t.Context(), "/etc"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("copy of a directory: %v", err)
	}
	if err := n.CopyIn(t.Context(), source, "/etc", 0o644); err == nil {
		t.Error("a file was copied over a directory")
	}
	if err := n.CopyIn(t.Context(), source+"-missing", "/root/x", 0o644); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing source: %v", err)
	}
}

// CopyOverARunningProgram checks that a running program can be replaced and is not written to.
func CopyOverARunningProgram(t *testing.T, n *nodes.Node) {
	n.MustExec(t, "cp", "/usr/bin/sleep", "/usr/local/bin/busy")
	n.MustExec(t, "systemd-run", "--quiet", "/usr/local/bin/busy", "600")
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, []byte("#!/bin/sh\necho new\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.CopyIn(t.Context(), source, "/usr/local/bin/busy", 0o755); err != nil {
		t.Fatal(err)
	}
	if got := n.MustExec(t, "busy").Stdout; got != "new\n" {
		t.Errorf("the replaced program says %q", got)
	}
}
