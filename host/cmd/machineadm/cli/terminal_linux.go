package cli

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// openTerminal reports whether a stream is a terminal that supports control sequences. restore has no effect.
func openTerminal(stream io.Writer) (restore func(), ok bool) {
	file, ok := stream.(*os.File)
	if name := os.Getenv("TERM"); !ok || name == "" || name == "dumb" {
		return nil, false
	}
	raw, err := file.SyscallConn() // Fd would make the file blocking
	if err != nil {
		return nil, false
	}
	var isTerminal bool
	err = raw.Control(func(fd uintptr) {
		_, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		isTerminal = err == nil
	})
	return func() {}, err == nil && isTerminal
}
