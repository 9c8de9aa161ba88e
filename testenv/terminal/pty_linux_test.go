package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	needs "github.com/machineadm/machineadm/internal/require"
)

// pty opens a new pseudo-terminal: the end of the test, and the end of the program.
func pty(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() }) // a test may have closed it
	number := 0
	control(t, master, func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		return err
	})
	if slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() }) // as above
	return master, slave
}

func control(t *testing.T, file *os.File, f func(fd int) error) {
	t.Helper()
	c, err := file.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var inner error
	if err := errors.Join(c.Control(func(fd uintptr) { inner = f(int(fd)) }), inner); err != nil {
		t.Fatal(err)
	}
}

// modes are the settings of the terminal for input and output.
func modes(t *testing.T, file *os.File) unix.Termios {
	t.Helper()
	var out unix.Termios
	control(t, file, func(fd int) error {
		m, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			out = *m
		}
		return err
	})
	return out
}

// session is a program on a terminal.
type session struct {
	t             *testing.T
	command       *exec.Cmd
	master, slave *os.File
	before        unix.Termios
	done          chan struct{} // the program has ended

	mu  sync.Mutex
	raw []byte // output of the program
}

// begin starts a command on a terminal, as a shell would: in a session of its own, whose terminal it is.
func begin(t *testing.T, c *exec.Cmd) *session {
	t.Helper()
	return beginOn(t, c, 0)
}

// beginOn starts a command on a terminal with this many columns; 0 means that the terminal does not have a width.
func beginOn(t *testing.T, c *exec.Cmd, columns uint16) *session {
	t.Helper()
	s := &session{t: t, command: c, done: make(chan struct{})}
	s.master, s.slave = pty(t)
	control(t, s.slave, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	})
	s.before = modes(t, s.slave)
	c.Stdin = s.slave
	if c.Stdout == nil {
		c.Stdout = s.slave
	}
	if c.Stderr == nil {
		c.Stderr = s.slave
	}
	if c.SysProcAttr == nil {
		c.SysProcAttr = &syscall.SysProcAttr{}
	}
	c.SysProcAttr.Setsid, c.SysProcAttr.Setctty = true, true
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.Wait() // the exit code is checked
		close(s.done)
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill() // it has ended, unless the test failed
		<-s.done
	})
	go s.watch()
	return s
}

// watch reads until the terminal is closed.
func (s *session) watch() {
	buffer := make([]byte, 4096)
	for {
		n, err := s.master.Read(buffer)
		s.mu.Lock()
		s.raw = append(s.raw, buffer[:n]...)
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// sent returns the output of the program so far.
func (s *session) sent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.ReplaceAll(string(s.raw), "\r\n", "\n")
}

// mark is written by the shell after the program has ended.
const mark = "# the shell is back"

// text is what stays on the terminal: without the status lines, each of which is erased before anything else is written.
func (s *session) text() string {
	return strings.TrimSuffix(status.ReplaceAllString(s.sent(), ""), mark)
}

// status matches a status line, the echo of an interrupt, and the sequence that erases both.
var status = regexp.MustCompile(`\x1b\[\?7l[^\n]*?\x1b\[\?7h(\^C)?\r\x1b\[K`)

// shows waits until the program has written all of these.
func (s *session) shows(words ...string) {
	s.t.Helper()
	s.until(fmt.Sprintf("the terminal shows %q", words), func() bool {
		text := s.sent()
		for _, w := range words {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return true
	})
}

// matches waits until the output of the program matches a pattern.
func (s *session) matches(pattern string) {
	s.t.Helper()
	p := regexp.MustCompile("(?s)" + pattern)
	s.until(fmt.Sprintf("the terminal matches %q", p), func() bool { return p.MatchString(s.sent()) })
}

// begins waits until the status line names a document. It also has the time of the run, unless that is less than a second.
func (s *session) begins(document string) {
	s.t.Helper()
	s.matches("documents done(, [0-9hm]*[0-9]+s)?: " + document + ": ")
}

func (s *session) until(what string, condition func() bool) {
	s.t.Helper()
	deadline := time.NewTimer(needs.Timeout(time.Minute))
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline.C:
			s.t.Fatalf("not reached in time: %s; the terminal shows\n%s", what, s.text())
		case <-tick.C:
		}
	}
}

// types sends keys.
func (s *session) types(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// ends waits for the end of the program, and that everything was read that it wrote. It leaves the terminal as it was.
func (s *session) ends(exit int) {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(needs.Timeout(time.Minute)):
		s.t.Fatalf("the program does not end; the terminal shows\n%s", s.text())
	}
	if got := s.command.ProcessState.ExitCode(); got != exit {
		s.t.Errorf("exit %d, want %d; the terminal shows\n%s", got, exit, s.text())
	}
	if _, err := s.slave.WriteString(mark); err != nil {
		s.t.Fatal(err)
	}
	s.shows(mark)
	if after := modes(s.t, s.slave); after != s.before {
		s.t.Errorf("the terminal was left in other modes: %+v, before %+v", after, s.before)
	}
	if text := s.text(); exit >= 0 && regexp.MustCompile("\x1b\\[[^0-9]").MatchString(text) {
		s.t.Errorf("a status line is left:\n%q", text)
	}
}

// within is a context for a command that must end in time.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
