//go:build !linux && !windows

package cli

import "io"

// openTerminal reports no terminal: only platforms that run plugins have status lines and colors.
func openTerminal(io.Writer) (restore func(), columns int, ok bool) { return nil, 0, false }
