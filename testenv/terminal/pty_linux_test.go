package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pty opens a new pseudo-terminal of this size: the end of who looks at it, and the end of the program.
func pty(t *testing.T, width, height int) (master, slave *os.File) {
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
	setSize(t, master, width, height)
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

func setSize(t *testing.T, master *os.File, width, height int) {
	t.Helper()
	control(t, master, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(width), Row: uint16(height)})
	})
}

// modes are how the terminal treats what is typed and written.
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

// session is a program on a terminal, and somebody who looks at it.
type session struct {
	t             *testing.T
	command       *exec.Cmd
	master, slave *os.File
	before        unix.Termios
	done          chan struct{} // the program has ended

	mu   sync.Mutex
	view *emulator
	raw  []byte
	look bool
}

// begin starts a command on a terminal, as a shell would: in a session of its own, whose terminal it is.
func begin(t *testing.T, c *exec.Cmd, width, height int) *session {
	t.Helper()
	s := &session{t: t, command: c, view: newEmulator(width, height), done: make(chan struct{}), look: true}
	s.master, s.slave = pty(t, width, height)
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
		_ = c.Wait() // the exit code tells
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
		s.view.Write(buffer[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// text is what stands on the terminal and in its history.
func (s *session) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.text()
}

func (s *session) sent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.raw)
}

// shows waits until all of these stand on the terminal.
func (s *session) shows(words ...string) {
	s.t.Helper()
	s.until(fmt.Sprintf("the terminal shows %q", words), func() bool {
		text := s.text()
		for _, w := range words {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return true
	})
}

func (s *session) until(what string, condition func() bool) {
	s.t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline.C:
			s.t.Fatalf("waited in vain: %s; the terminal shows\n%s", what, s.text())
		case <-tick.C:
		}
	}
}

// types sends what a person types.
func (s *session) types(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) resize(width, height int) {
	s.t.Helper()
	s.mu.Lock()
	s.view.resize(width, height)
	s.mu.Unlock()
	setSize(s.t, s.master, width, height)
}

// ends waits for the end of the program, and that everything was read that it wrote. It leaves the terminal as it was.
func (s *session) ends(exit int) {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(time.Minute):
		s.t.Fatalf("the program does not end; the terminal shows\n%s", s.text())
	}
	if got := s.command.ProcessState.ExitCode(); got != exit {
		s.t.Errorf("exit %d, want %d; the terminal shows\n%s", got, exit, s.text())
	}
	const mark = "# the shell is back"
	if _, err := s.slave.WriteString(mark); err != nil {
		s.t.Fatal(err)
	}
	s.shows(mark)
	if after := modes(s.t, s.slave); after != s.before {
		s.t.Errorf("the terminal was left in other modes: %+v, before %+v", after, s.before)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.view.unknown) > 0 {
		s.t.Errorf("the terminal was sent %q", s.view.unknown)
	}
	if lines := s.view.lines(); lines[len(lines)-1] != mark {
		s.t.Errorf("the cursor was left in the middle:\n%s", s.view.text())
	}
}

// finished are the lines that stand there at the end, without the last.
func (s *session) finished() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.view.lines()
	return lines[:len(lines)-1]
}

// within is a context for a command that must not hold up the rest.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
