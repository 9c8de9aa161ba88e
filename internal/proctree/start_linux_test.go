package proctree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	needs "github.com/machineadm/machineadm/internal/require"
)

// strangersVariable lists descriptors that the parent of the test left open: they are passed on as every exec does.
const strangersVariable = "PROCTREE_TEST_STRANGERS"

func strangers() string {
	list := strangersVariable + "=,"
	for fd := firstFile; fd < lastShown; fd++ {
		if isInherited(fd) {
			list += strconv.Itoa(fd) + ","
		}
	}
	return list
}

const firstFile, lastShown = 3, 30

// show prints what a program sees of itself.
func show() error {
	directory, err := os.Getwd()
	if err != nil {
		return err
	}
	fmt.Printf("args %q\ndir %s\nvalue %q\ngroup leader %v\n", os.Args, directory, os.Getenv("VALUE"), unix.Getpid() == group())
	for fd := firstFile; fd < lastShown; fd++ {
		if !isInherited(fd) || strings.Contains(os.Getenv(strangersVariable), fmt.Sprintf(",%d,", fd)) {
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

func group() int {
	s, err := readStat(os.Getpid())
	if err != nil {
		return -1
	}
	return s.group
}

// isInherited reports whether a descriptor came with the exec. In gaps that were left, the Go runtime opens files of its
// own, which are closed on exec.
func isInherited(descriptor int) bool {
	flags, err := unix.FcntlInt(uintptr(descriptor), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}

// contain is not ended by KillDescendants, which collects the children of other tests too.
func contain(t *testing.T) *Tree {
	t.Helper()
	tree, err := Contain()
	require.NoError(t, err)
	return tree
}

// run starts c and waits for it. It returns the exit status, stdout and stderr.
func run(t *testing.T, c Command) (status int, stdout, stderr string) {
	t.Helper()
	var texts [2]string
	var readers sync.WaitGroup
	for i, stream := range []**os.File{&c.Stdout, &c.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		*stream = w
		readers.Go(func() {
			data, err := io.ReadAll(r)
			texts[i] = string(data)
			if err = errors.Join(err, r.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	p, err := contain(t).Start(t.Context(), c)
	if closed := errors.Join(c.Stdout.Close(), c.Stderr.Close()); closed != nil {
		t.Error(closed)
	}
	readers.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if status, err = p.Wait(); err != nil {
		t.Fatal(err)
	}
	return status, texts[0], texts[1]
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
	if err := needs.WriteProgram(path+".new", []byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// TestDescriptors: everything reaches the program unchanged, and nothing else of the host's does.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	for _, name := range []string{"a", "b", "in"} {
		write(t, filepath.Join(directory, name), "content of "+name)
	}
	c := Command{
		Path: "/proc/self/exe", Arguments: []string{"one", "", "two three"}, Dir: directory,
		Environment: []string{roleVariable + "=show", "VALUE=a b\nc", strangers()}, Stdin: open(t, filepath.Join(directory, "in")),
		Files: []*os.File{open(t, filepath.Join(directory, "a")), nil, open(t, filepath.Join(directory, "b"))},
	}
	status, stdout, stderr := run(t, c)
	require.Equal(t, stdout, `args ["/proc/self/exe" "one" "" "two three"]
dir `+directory+`
value "a b\nc"
group leader true
descriptor 3: "content of a" <nil>
descriptor 5: "content of b" <nil>
stdin "content of in"
`)
	require.Equal(t, stderr, "stderr\n")
	if status != 0 {
		t.Errorf("status %d", status)
	}
}

// TestManyDescriptors: the open program is executed, whatever numbers its own descriptors get.
func TestManyDescriptors(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x")
	write(t, path, "x")
	for _, count := range []int{0, 1, 2, 7, 240} {
		c := Command{Path: "/bin/ls", Program: open(t, "/bin/ls"), Arguments: []string{"-l", "/proc/self/fd"}, Files: make([]*os.File, count)}
		for i := range c.Files {
			c.Files[i] = open(t, path)
		}
		status, stdout, _ := run(t, c)
		require.Zero(t, status)
		require.Equal(t, count, strings.Count(stdout, " -> "+path+"\n"), stdout)
		require.NotContains(t, stdout, "/ls\n")
	}
}

// TestProgramBegins: what the host has made of itself does not show in what it starts.
func TestProgramBegins(t *testing.T) {
	t.Parallel()
	soft := "ulimit -S -n; "
	signals := "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; "
	c := Command{Path: "/bin/sh", Arguments: []string{"-c", soft + signals + "umask; echo $PPID; env"}, Environment: []string{"A=1"}}
	_, got, _ := run(t, c)
	plain := exec.CommandContext(t.Context(), c.Path, c.Arguments...)
	plain.Env = c.Environment
	out, err := plain.Output()
	require.NoError(t, err)
	require.Equal(t, sorted(string(out)), sorted(got))
}

func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestOpenFile: the open file runs, not what has taken its name; and it does not stay open in the program.
func TestOpenFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "program")
	write(t, path, "#!/bin/sh\necho replaced\n")
	_, stdout, stderr := run(t, Command{
		Path: path, Arguments: []string{"x"}, Program: open(t, "/proc/self/exe"), Dir: "/",
		Environment: []string{roleVariable + "=show", strangers()},
	})
	require.Equal(t, stdout, fmt.Sprintf("args [%q \"x\"]\ndir /\nvalue \"\"\ngroup leader true\nstdin \"\"\n", path))
	require.Equal(t, stderr, "stderr\n")
}

func TestScript(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "script")
	write(t, path, "#!/bin/sh\necho \"checked $* $(cat <&3)\"\nexit 5\n")
	file := open(t, path)
	write(t, path, "#!/bin/sh\necho replaced\n")
	write(t, path+".data", "data")
	c := Command{Path: path, Program: file, Arguments: []string{"a", "b c"}, Files: []*os.File{open(t, path+".data")}}
	status, stdout, stderr := run(t, c)
	require.Equal(t, stdout, "checked a b c data\n")
	require.Equal(t, stderr, "")
	if status != 5 {
		t.Errorf("status %d", status)
	}
	_, stdout, _ = run(t, Command{Path: path})
	require.Equal(t, stdout, "replaced\n")
}

func TestExitStatus(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{
		"exit 0": 0, "exit 3": 3, "exit 255": 255, "kill -KILL $$": 128 + 9, "kill -TERM $$": 128 + 15,
	} {
		if got, _, _ := run(t, Command{Path: "/bin/sh", Arguments: []string{"-c", script}}); got != want {
			t.Errorf("%s: status %d, want %d", script, got, want)
		}
	}
}

// TestNotStarted: the caller learns why.
func TestNotStarted(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	write(t, filepath.Join(directory, "garbage"), "\x7fELF garbage")
	write(t, filepath.Join(directory, "empty"), "")
	write(t, filepath.Join(directory, "no interpreter"), "#!/nowhere/sh\n")
	if err := os.WriteFile(filepath.Join(directory, "no x"), []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tree := contain(t)
	for name, test := range map[string]struct {
		opened bool
		dir    string
		want   error
	}{
		"missing":        {want: fs.ErrNotExist},
		"garbage":        {opened: true, want: syscall.ENOEXEC},
		"empty":          {opened: true, want: syscall.ENOEXEC},
		"no x":           {opened: true, want: fs.ErrPermission},
		"no interpreter": {opened: true, want: fs.ErrNotExist},
		".":              {want: fs.ErrPermission},
		"no x/below":     {want: syscall.ENOTDIR},
	} {
		c := Command{Path: filepath.Join(directory, name), Dir: test.dir}
		if test.opened {
			c.Program = open(t, c.Path)
		}
		_, err := tree.Start(t.Context(), c)
		if !errors.Is(err, test.want) || !strings.HasPrefix(err.Error(), "start "+c.Path+": ") {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	if _, err := tree.Start(t.Context(), Command{Path: "/bin/true", Dir: "/nowhere"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such directory: %v", err)
	}
	if _, err := tree.Start(t.Context(), Command{Path: "/bin/true", Arguments: []string{strings.Repeat("x", 4<<20)}}); !errors.Is(err, syscall.E2BIG) {
		t.Errorf("too many arguments: %v", err)
	}
	if _, err := tree.Start(t.Context(), Command{Path: "/bin/true", Arguments: []string{"\x00"}}); err == nil {
		t.Error("a NUL in an argument")
	}
	if _, err := tree.Start(t.Context(), Command{Path: "relative"}); err == nil || !strings.Contains(err.Error(), "not absolute") {
		t.Errorf("relative: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := tree.Start(ended, Command{Path: "/bin/true"})
	require.ErrorIs(t, err, context.Canceled)
	p, err := tree.Start(t.Context(), Command{Path: "/bin/true"})
	if err != nil {
		t.Fatal(err)
	}
	if status, err := p.Wait(); status != 0 || err != nil {
		t.Errorf("after all that: status %d, %v", status, err)
	}
}

// TestSession: with a controlling terminal a program has its own session, without one the host's.
func TestSession(t *testing.T) {
	t.Parallel()
	for terminal, leads := range map[int]bool{0: false, 34816: true} {
		tree := contain(t)
		tree.self.terminal = terminal
		p, err := tree.Start(t.Context(), Command{Path: "/bin/sleep", Arguments: []string{"1000"}})
		require.NoError(t, err)
		s, err := readStat(p.PID())
		require.NoError(t, err)
		require.Equal(t, p.PID(), s.group)
		require.Equal(t, leads, s.session == p.PID())
		require.NoError(t, p.Kill())
		_, err = p.Wait()
		require.NoError(t, err)
	}
}
