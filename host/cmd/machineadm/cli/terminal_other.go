//go:build !linux && !windows

package cli

import (
	"io"
	"os"
)

// openTerminal reports no terminal: only platforms that run plugins have status lines and colors.
func openTerminal(io.Writer) (restore func(), columns int, ok bool) { return nil, 0, false }

// isTerminal reports whether a stream is a terminal, or another character device.
func isTerminal(stream io.Writer) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
