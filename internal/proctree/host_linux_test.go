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

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/proctree/guard"
	"github.com/machineadm/machineadm/internal/proctree/proc"
)

// The test binary plays the host and some programs too: roleVariable says which.
const (
	roleVariable = "PROCTREE_TEST_ROLE"
	markVariable = "PROCTREE_TEST_MARK" // in the environment of all processes of one test
	deadline     = 30 * time.Second
)

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
	tree, guard, err := containOnDyingThread()
	if err != nil {
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
	p, err := tree.Start(context.Background(), c)
	if err != nil {
		return err
	}
	for _, f := range append(c.Files, theirIn, theirOut) {
		if err := f.Close(); err != nil {
			return err
		}
	}
	fmt.Println("guard", guard, "program", p.PID())
	programSays := bufio.NewScanner(stdout)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch line := lines.Text(); line {
		case "kill":
			err = p.Kill()
		case "wait":
			var status int
			status, err = p.Wait()
			fmt.Print(status, " ")
		case "kill descendants":
			ctx, cancel := context.WithTimeout(context.Background(), deadline)
			err = tree.KillDescendants(ctx)
			cancel()
		default: // for the program, which answers
			_, err = fmt.Fprintln(stdin, line)
			programSays.Scan()
			fmt.Print(programSays.Text(), " ")
		}
		if err != nil {
			return err
		}
		fmt.Println("ok")
	}
	return lines.Err()
}

// containOnDyingThread starts the guard on a thread that ends, as threads of Go programs do now and then.
func containOnDyingThread() (*Tree, int, error) {
	type started struct {
		tree   *Tree
		thread int
		err    error
	}
	result := make(chan started)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		tree, err := Contain()
		result <- started{tree, unix.Gettid(), err}
	}()
	s := <-result
	if s.err != nil {
		return nil, 0, s.err
	}
	children, err := proc.ChildrenByParent(os.Getpid())
	if err != nil || len(children) != 1 {
		return nil, 0, fmt.Errorf("children %d, want the guard alone (%w)", children, err)
	}
	if s.thread == os.Getpid() { // the first thread of a process cannot end
		return s.tree, children[0], nil
	}
	for end := time.Now().Add(deadline); time.Now().Before(end); runtime.Gosched() {
		if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(s.thread)); errors.Is(err, os.ErrNotExist) {
			return s.tree, children[0], nil
		}
	}
	return nil, 0, errors.New("the starting thread did not end")
}

// host is a process that starts a program, as the test sees it.
type host struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdin          io.WriteCloser
	stdout         *bufio.Scanner
	mark           string
	guard, program int
}

// startHost starts a host that starts command. `$READY` in the command's environment is a file: startHost returns when it exists.
func startHost(t *testing.T, extra []*os.File, command ...string) *host {
	t.Helper()
	h := &host{t: t, cmd: exec.Command("/proc/self/exe", command...), mark: mark(t)}
	ready := filepath.Join(t.TempDir(), "ready")
	h.cmd.Env = append(os.Environ(), roleVariable+"=host", h.mark, "READY="+ready)
	h.cmd.ExtraFiles = extra
	h.cmd.Stderr = os.Stderr
	var err error
	if h.stdin, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.stdout = bufio.NewScanner(stdout)
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
		endAll(t, h.mark)
	})
	if _, err := fmt.Sscanf(h.answer(), "guard %d program %d", &h.guard, &h.program); err != nil {
		t.Fatal(err)
	}
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

// living lists the processes that carry the mark and run. A guard carries none.
func living(t *testing.T, mark string) []int {
	t.Helper()
	var found []int
	err := proc.Each(func(pid int) error {
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || !strings.Contains("\x00"+string(environment), "\x00"+mark+"\x00") {
			return nil //nolint:nilerr // gone, or another user's
		}
		p, err := proc.Read(pid)
		if err == nil && !p.Dead() {
			found = append(found, pid)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// guardGone waits for the end of the guard, which goes last.
func (h *host) guardGone() {
	h.t.Helper()
	eventually(h.t, "the guard is gone", func() bool {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", h.guard))
		return err != nil || !strings.HasPrefix(string(name), guard.Name)
	})
}

func allGone(t *testing.T, mark string) {
	t.Helper()
	eventually(t, "all processes are gone", func() bool { return len(living(t, mark)) == 0 })
}

func endAll(t *testing.T, mark string) {
	t.Helper()
	for _, pid := range living(t, mark) {
		t.Errorf("process %d is left behind", pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", deadline, what)
		}
	}
}
