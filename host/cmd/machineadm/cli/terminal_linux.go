package cli

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// openTerminal reports whether a stream is a terminal that supports control sequences, and its width, 0 if unknown. restore
// has no effect.
func openTerminal(stream io.Writer) (restore func(), columns int, ok bool) {
	file, ok := stream.(*os.File)
	if name := os.Getenv("TERM"); !ok || name == "" || name == "dumb" {
		return nil, 0, false
	}
	raw, err := file.SyscallConn() // Fd would make the file blocking
	if err != nil {
		return nil, 0, false
	}
	err = raw.Control(func(fd uintptr) {
		if size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ); err == nil {
			columns = int(size.Col)
		}
	})
	return func() {}, columns, err == nil && isTerminal(stream)
}

// isTerminal reports whether a stream is a terminal of any kind.
func isTerminal(stream io.Writer) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	raw, err := file.SyscallConn() // Fd would make the file blocking
	if err != nil {
		return false
	}
	terminal := false
	err = raw.Control(func(fd uintptr) {
		_, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		terminal = err == nil
	})
	return err == nil && terminal
}
