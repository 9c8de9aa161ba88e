package proctree

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The test binary plays the host and some programs as well: roleVariable says which.
const (
	roleVariable = "PROCTREE_TEST_ROLE"
	markVariable = "PROCTREE_TEST_MARK" // in the environment of all processes of one test
	deadline     = 30 * time.Second
)

// init keeps the main goroutine on the first thread, which adopts orphans: other goroutines start the children of tests
// on other threads, so that no Tree takes one for an orphan.
func init() { runtime.LockOSThread() } //nolint:gochecknoinits // before the first goroutine

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(role, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "role", role+":", err)
			os.Exit(99)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func play(role string, args []string) error {
	switch role {
	case "host":
		return playHost(args)
	case "show":
		return show()
	case "mortal":
		return playMortal(args[0])
	case "join":
		return playJoin(args[0])
	case "secret":
		return playSecret()
	default:
		return errors.New("unknown")
	}
}

// playHost starts the program args and then does what the lines of its stdin say, answering each with a line.
func playHost(args []string) error {
	if err := NoCoreDumps(); err != nil {
		return err
	}
	c := Command{
		Path: args[0], Arguments: args[1:], Stderr: os.Stderr,
		Environment: slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, roleVariable+"=") }),
	}
	if _, err := unix.FcntlInt(3, unix.F_GETFD, 0); err == nil {
		c.Files = []*os.File{os.NewFile(3, "handed on")}
	}
	theirIn, stdin, err := os.Pipe()
	if err != nil {
		return err
	}
	stdout, theirOut, err := os.Pipe()
	if err != nil {
		return err
	}
	c.Stdin, c.Stdout = theirIn, theirOut
	tree, p, err := startOnDyingThread(c)
	if err != nil {
		return err
	}
	for _, f := range append(c.Files, theirIn, theirOut) {
		if err := f.Close(); err != nil {
			return err
		}
	}
	fmt.Println("program", p.PID())
	programSays := bufio.NewScanner(stdout)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		switch line := lines.Text(); line {
		case "kill":
			err = p.Kill()
		case "wait":
			var status int
			status, err = p.Wait()
			fmt.Print(status, " ")
		case "kill orphans":
			var killed []Killed
			killed, err = tree.KillOrphans(ctx)
			fmt.Printf("killed %v ", len(killed) > 0 && !slices.ContainsFunc(killed, func(k Killed) bool { return k.Name == "" || k.PID == 0 }))
		case "kill descendants":
			err = tree.KillDescendants(ctx)
		default: // for the program, which answers
			_, err = fmt.Fprintln(stdin, line)
			programSays.Scan()
			fmt.Print(programSays.Text(), " ")
		}
		cancel()
		if err != nil {
			return err
		}
		fmt.Println("ok")
	}
	return lines.Err()
}

// playJoin enters the process group of the host, which is its own session's, and becomes a shell that runs.
func playJoin(host string) error {
	group, err := strconv.Atoi(host)
	if err == nil {
		err = unix.Setpgid(0, group)
	}
	if err != nil {
		return err
	}
	command := script(ready + "exec sleep 1000")
	return syscall.Exec(command[0], command, os.Environ())
}

// startOnDyingThread starts a program from a thread that ends, as threads of Go programs do now and then.
func startOnDyingThread(c Command) (tree *Tree, p *Process, err error) {
	thread := make(chan int)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if tree, err = Contain(); err == nil {
			p, err = tree.Start(context.Background(), c)
		}
		thread <- unix.Gettid()
	}()
	id := <-thread
	if err != nil || id == os.Getpid() { // the first thread of a process cannot end
		return tree, p, err
	}
	for end := time.Now().Add(deadline); time.Now().Before(end); runtime.Gosched() {
		if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(id)); errors.Is(err, os.ErrNotExist) {
			return tree, p, nil
		}
	}
	return nil, nil, errors.New("the starting thread did not end")
}

// host is a process that starts a program, as the test sees it.
type host struct {
	t       *testing.T
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stdout  *bufio.Scanner
	mark    string
	program int
}

// startHost starts a host that starts command. `$READY` in the command's environment is a file: startHost returns when it exists.
func startHost(t *testing.T, extra []*os.File, command ...string) *host {
	t.Helper()
	h := &host{t: t, cmd: exec.Command("/proc/self/exe", command...), mark: mark(t)}
	ready := filepath.Join(t.TempDir(), "ready")
	h.cmd.Env = append(os.Environ(), roleVariable+"=host", h.mark, "READY="+ready)
	h.cmd.ExtraFiles = extra
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal, so that programs share its session
	h.cmd.Stderr = os.Stderr
	var err error
	h.stdin, err = h.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := h.cmd.StdoutPipe()
	require.NoError(t, err)
	h.stdout = bufio.NewScanner(stdout)
	require.NoError(t, h.cmd.Start())
	t.Cleanup(func() {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
		for _, pid := range living(t, h.mark) {
			t.Errorf("process %d is left behind", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	_, err = fmt.Sscanf(h.answer(), "program %d", &h.program)
	require.NoError(t, err)
	eventually(t, "the tree is ready", func() bool { _, err := os.Stat(ready); return err == nil })
	return h
}

func (h *host) tell(line string) string {
	h.t.Helper()
	if _, err := fmt.Fprintln(h.stdin, line); err != nil {
		h.t.Fatal(err)
	}
	return h.answer()
}

func (h *host) answer() string {
	h.t.Helper()
	if !h.stdout.Scan() {
		h.t.Fatalf("the host says no more: %v", h.stdout.Err())
	}
	return h.stdout.Text()
}

func (h *host) killHost() {
	h.t.Helper()
	signalTo(h.t, h.cmd.Process.Pid, syscall.SIGKILL)
	_ = h.cmd.Wait() // "signal: killed"
}

func signalTo(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// mark is a variable by which a process of this test's tree is known, whatever else became of it.
func mark(t *testing.T) string {
	return fmt.Sprintf("%s=%s-%d-%d", markVariable, strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid(), time.Now().UnixNano())
}

// living lists the processes that carry the mark and run.
func living(t *testing.T, mark string) (found []int) {
	t.Helper()
	names, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, name := range names {
		environment, err := os.ReadFile("/proc/" + name.Name() + "/environ")
		if err != nil || !strings.Contains("\x00"+string(environment), "\x00"+mark+"\x00") {
			continue // gone, or another user's
		}
		pid, err := strconv.Atoi(name.Name())
		if err != nil {
			continue // "self"
		}
		s, err := readStat(pid)
		require.NoError(t, err)
		if !s.dead() {
			found = append(found, pid)
		}
	}
	return found
}

func allGone(t *testing.T, mark string) {
	t.Helper()
	eventually(t, "all processes are gone", func() bool { return len(living(t, mark)) == 0 })
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", deadline, what)
		}
	}
}
