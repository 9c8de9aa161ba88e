package nodes_test

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

func TestExec(t *testing.T) {
	t.Parallel()
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie})
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
	t.Run("no command", func(t *testing.T) {
		if _, err := n.Exec(t.Context()); err == nil {
			t.Error("no error")
		}
	})
	t.Run("stdin", func(t *testing.T) {
		sent := strings.Repeat("0123456789", 100_000)
		r, err := n.ExecInput(t.Context(), strings.NewReader(sent), "cat")
		if err != nil || r.Stdout != sent {
			t.Errorf("%d of %d bytes came back, %v", len(r.Stdout), len(sent), err)
		}
	})
}

// A command is inside the node in every respect: namespaces, control group, capabilities, environment.
func TestExecIsInside(t *testing.T) {
	t.Parallel()
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Bookworm})
	for _, ns := range []string{"mnt", "uts", "ipc", "net", "pid", "cgroup"} {
		self := n.MustExec(t, "readlink", "/proc/self/ns/"+ns).Stdout
		if init := n.MustExec(t, "readlink", "/proc/1/ns/"+ns).Stdout; self != init {
			t.Errorf("%s namespace %q, PID 1 has %q", ns, self, init)
		}
		if self == readlink(t, "/proc/self/ns/"+ns)+"\n" {
			t.Errorf("%s namespace is the host's", ns)
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
	environment := strings.Fields(n.MustExec(t, "env").Stdout)
	slices.Sort(environment)
	want := []string{"HOME=/root", "LANG=C.UTF-8", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=dumb"}
	if !slices.Equal(environment, want) {
		t.Errorf("environment %q, want %q", environment, want)
	}
}

// When the context ends, the command's whole tree ends; the node does not notice.
func TestExecCancel(t *testing.T) {
	t.Parallel()
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := n.Exec(ctx, "sh", "-c", "setsid sleep 98765 & touch /run/started; wait")
		ended <- err
	}()
	n.MustExec(t, "sh", "-c", "until test -e /run/started && pgrep -f '^sleep 98765'; do sleep 0.05; done")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if r, err := n.Exec(t.Context(), "pgrep", "-f", "^sleep 98765"); err != nil || r.ExitCode != 1 {
		t.Errorf("the command's child is still there: exit %d, %q, %v", r.ExitCode, r.Stdout, err)
	}
}

// A daemon that a command leaves behind lives on, as after a login.
func TestExecLeavesADaemon(t *testing.T) {
	t.Parallel()
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie})
	n.MustExec(t, "sh", "-c", "setsid sleep 98764 >/dev/null 2>&1 &")
	n.MustExec(t, "pgrep", "-f", "^sleep 98764")
}

func TestCopy(t *testing.T) {
	t.Parallel()
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Bookworm})
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

// A program that runs can be replaced: the running one is not written to.
func TestCopyOverARunningProgram(t *testing.T) {
	t.Parallel()
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie})
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
