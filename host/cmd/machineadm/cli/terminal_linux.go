package cli

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openTerminal opens the terminal that a stream is connected to, if it is one.
func openTerminal(stream io.Writer) (*terminal, bool) {
	file, ok := stream.(*os.File)
	if !ok || !drawable(os.Getenv("TERM")) {
		return nil, false
	}
	is := false
	err := control(file, func(fd int) {
		_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		is = err == nil
	})
	if err != nil || !is {
		return nil, false
	}
	// A description of its own is not blocking, so that a Write can be cancelled. That of the stream is shared with the
	// shell, which must not find it changed.
	if err := control(file, func(fd int) {
		own, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
		if err == nil { // else it is another user's, and has to do as it is
			file = own
		}
	}); err != nil {
		return nil, false
	}
	return &terminal{file: file, restore: func() {
		if file != stream {
			_ = file.Close() // everything was written, or never will be
		}
	}}, true
}

// sameTerminal says whether another stream is connected to the terminal of the first.
func sameTerminal(stream, other io.Writer) bool {
	one, ok := stream.(*os.File)
	two, too := other.(*os.File)
	if !ok || !too {
		return false
	}
	first, err := one.Stat()
	if err != nil {
		return false
	}
	second, err := two.Stat()
	return err == nil && os.SameFile(first, second)
}

// drawable: a terminal without a name cannot be asked for anything.
func drawable(name string) bool { return name != "" && name != "dumb" }

// control leaves the mode of the file as it is, which Fd does not.
func control(file *os.File, f func(fd int)) error {
	c, err := file.SyscallConn()
	if err != nil {
		return err
	}
	return c.Control(func(fd uintptr) { f(int(fd)) })
}

// Size implements reporting.Terminal.
func (t *terminal) Size() (width, height int) {
	err := control(t.file, func(fd int) {
		if size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); err == nil {
			width, height = int(size.Col), int(size.Row)
		}
	})
	if err != nil {
		return 0, 0
	}
	return width, height
}

// continued are the signals after which somebody else has written to the terminal.
func continued() []os.Signal { return []os.Signal{syscall.SIGCONT} }
