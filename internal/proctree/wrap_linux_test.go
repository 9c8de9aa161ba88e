package proctree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// strangersVariable lists descriptors that whoever started the test left open: they are passed on as every exec does.
const strangersVariable = "PROCTREE_TEST_STRANGERS"

func strangers() string {
	list := strangersVariable + "=,"
	for fd := firstExtraFile; fd < lastShown; fd++ {
		if inherited(fd) {
			list += strconv.Itoa(fd) + ","
		}
	}
	return list
}

const lastShown = 30

// show prints what a program sees of itself.
func show() error {
	directory, err := os.Getwd()
	if err != nil {
		return err
	}
	fmt.Printf("args %q\ndir %s\nvalue %q\nsession leader %v\n", os.Args, directory, os.Getenv("VALUE"), unix.Getpid() == sessionID())
	for fd := firstExtraFile; fd < lastShown; fd++ {
		if !inherited(fd) || strings.Contains(os.Getenv(strangersVariable), fmt.Sprintf(",%d,", fd)) {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(os.NewFile(uintptr(fd), ""), 64))
		fmt.Printf("descriptor %d: %q %v\n", fd, data, err)
	}
	data, err := io.ReadAll(os.Stdin)
	fmt.Printf("stdin %q\n", data)
	fmt.Fprintf(os.Stderr, "stderr\n")
	return err
}

func sessionID() int {
	p, err := readProcess(os.Getpid())
	if err != nil {
		return -1
	}
	return p.session
}

// run wraps, starts and waits for cmd, and returns its stdout and stderr.
func run(t *testing.T, cmd *exec.Cmd, program *os.File) (stdout, stderr string) {
	t.Helper()
	g, err := Wrap(cmd, program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Kill(); err != nil {
			t.Error(err)
		}
	}()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String()
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	return file
}

func write(t *testing.T, path, content string) {
	t.Helper()
	// By rename, as an installer would: another file by the same name.
	if err := os.WriteFile(path+".new", []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// TestDescriptors: everything reaches the program unchanged, and nothing of the guard's does.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	for _, name := range []string{"a", "b"} {
		write(t, filepath.Join(directory, name), "content of "+name)
	}
	cmd := exec.Command("/proc/self/exe", "one", "", "two three")
	cmd.Path = "/proc/self/exe"
	cmd.Env = []string{roleVariable + "=show", "VALUE=a b\nc", strangers()}
	cmd.Dir = directory
	cmd.Stdin = strings.NewReader("input")
	cmd.ExtraFiles = []*os.File{open(t, filepath.Join(directory, "a")), nil, open(t, filepath.Join(directory, "b"))}
	stdout, stderr := run(t, cmd, nil)
	expect(t, stdout, `args ["/proc/self/exe" "one" "" "two three"]
dir `+directory+`
value "a b\nc"
session leader true
descriptor 3: "content of a" <nil>
descriptor 5: "content of b" <nil>
stdin "input"
`)
	expect(t, stderr, "stderr\n")
	expect(t, cmd.ProcessState.String(), "exit status 0")
}

// TestOpenFile: the open file runs, not what has taken its name; and it does not stay open in the program.
func TestOpenFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "program")
	write(t, path, "#!/bin/sh\necho replaced\n")
	cmd := exec.Command(path, "x")
	cmd.Env = []string{roleVariable + "=show", strangers()}
	cmd.Dir = "/"
	stdout, stderr := run(t, cmd, open(t, "/proc/self/exe"))
	expect(t, stdout, fmt.Sprintf("args [%q \"x\"]\ndir /\nvalue \"\"\nsession leader true\nstdin \"\"\n", path))
	expect(t, stderr, "stderr\n")
}

func TestScript(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "script")
	write(t, path, "#!/bin/sh\necho \"checked $* $(cat <&3)\"\nexit 5\n")
	file := open(t, path)
	write(t, path, "#!/bin/sh\necho replaced\n")
	write(t, path+".data", "data")
	cmd := exec.Command(path, "a", "b c")
	cmd.ExtraFiles = []*os.File{open(t, path+".data")}
	stdout, stderr := run(t, cmd, file)
	expect(t, stdout, "checked a b c data\n")
	expect(t, stderr, "")
	expect(t, cmd.ProcessState.String(), "exit status 5")

	stdout, _ = run(t, exec.Command(path), nil)
	expect(t, stdout, "replaced\n")
}

func TestExitStatus(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	write(t, filepath.Join(directory, "garbage"), "\x7fELF garbage")
	write(t, filepath.Join(directory, "empty"), "")
	write(t, filepath.Join(directory, "no interpreter"), "#!/nowhere/sh\n")
	if err := os.WriteFile(filepath.Join(directory, "no x"), []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	shell := func(script string) []string { return []string{"/bin/sh", "-c", script} }
	for name, test := range map[string]struct {
		command []string
		opened  bool
		want    int
		stderr  string
	}{
		"success":        {command: shell("exit 0")},
		"failure":        {command: shell("exit 3"), want: 3},
		"largest":        {command: shell("exit 255"), want: 255},
		"SIGKILL":        {command: shell("kill -KILL $$"), want: 128 + 9},
		"SIGTERM":        {command: shell("kill -TERM $$"), want: 128 + 15},
		"missing":        {command: []string{directory + "/missing"}, want: 127, stderr: "proctree-guard: start DIR/missing: no such file or directory\n"},
		"garbage":        {command: []string{directory + "/garbage"}, opened: true, want: 126, stderr: "proctree-guard: start DIR/garbage: exec format error\n"},
		"empty":          {command: []string{directory + "/empty"}, opened: true, want: 126, stderr: "proctree-guard: start DIR/empty: exec format error\n"},
		"not executable": {command: []string{directory + "/no x"}, opened: true, want: 126, stderr: "proctree-guard: start DIR/no x: permission denied\n"},
		"no interpreter": {command: []string{directory + "/no interpreter"}, opened: true, want: 127, stderr: "proctree-guard: start DIR/no interpreter: no such file or directory\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(test.command[0], test.command[1:]...)
			cmd.Err = nil // of LookPath, which is not what starts this
			var program *os.File
			if test.opened {
				program = open(t, cmd.Path)
			}
			_, stderr := run(t, cmd, program)
			if got := cmd.ProcessState.ExitCode(); got != test.want {
				t.Errorf("status %d, want %d", got, test.want)
			}
			expect(t, strings.ReplaceAll(stderr, directory, "DIR"), test.stderr)
		})
	}
}

// TestContext: the context of exec.CommandContext ends the tree by the guard, not by killing the guard.
func TestContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	m, ready := mark(t), filepath.Join(t.TempDir(), "ready")
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", daemonize+"; "+forever)
	cmd.Env = append(os.Environ(), m, "READY="+ready)
	g, err := Wrap(cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the tree is ready", func() bool { _, err := os.Stat(ready); return err == nil })
	cancel()
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 128+9 {
		t.Errorf("%v, status %s", err, cmd.ProcessState)
	}
	endAll(t, m)
	if err := errors.Join(g.Kill(), g.Kill()); err != nil {
		t.Error(err)
	}
}

func TestKillBeforeStart(t *testing.T) {
	t.Parallel()
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("/bin/mkdir", trace)
	g, err := Wrap(cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 128+9 {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(trace); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the program has run: %v", err)
	}
}

func TestWrapRefuses(t *testing.T) {
	t.Parallel()
	if _, err := Wrap(exec.Command("no-such-program-here"), nil); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("not found: %v", err)
	}
	if _, err := Wrap(&exec.Cmd{Path: "relative"}, nil); err == nil || !strings.Contains(err.Error(), "not absolute") {
		t.Errorf("relative: %v", err)
	}
	started := exec.Command("/bin/true")
	if err := started.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := Wrap(started, nil); err == nil || !strings.Contains(err.Error(), "already started") {
		t.Errorf("started: %v", err)
	}
}

// TestWrapLeavesTheCallersValues: what the caller shares between commands is not written to.
func TestWrapLeavesTheCallersValues(t *testing.T) {
	t.Parallel()
	files := make([]*os.File, 1, 8)
	attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd := &exec.Cmd{Path: "/bin/true", ExtraFiles: files, SysProcAttr: attributes}
	g, err := Wrap(cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if files[:2][1] != nil || !attributes.Setpgid || attributes.Setsid || attributes.Pdeathsig != syscall.SIGTERM {
		t.Errorf("changed: %v %+v", files[:2], attributes)
	}
	if cmd.SysProcAttr.Setpgid || cmd.SysProcAttr.Pdeathsig != 0 || !cmd.SysProcAttr.Setsid {
		t.Errorf("%+v", cmd.SysProcAttr)
	}
}

// playSecret turns core dumps off and starts itself, both ways that Wrap uses, from a process that is not dumpable.
func playSecret() error {
	if err := NoCoreDumps(); err != nil {
		return err
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		return err
	}
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		return err
	}
	fmt.Printf("limit %d %d, dumpable %d\n", limit.Cur, limit.Max, dumpable)
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	cmd := exec.Command("/bin/echo")
	cmd.Env = []string{roleVariable + "=show", strangers()}
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	g, err := Wrap(cmd, self)
	if err != nil {
		return err
	}
	return errors.Join(cmd.Run(), g.Kill(), self.Close())
}

func TestNoCoreDumps(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleVariable + "=secret"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	expect(t, string(out), "limit 0 0, dumpable 0\nargs [\"/bin/echo\"]\ndir /\nvalue \"\"\nsession leader true\nstdin \"\"\n")
}
