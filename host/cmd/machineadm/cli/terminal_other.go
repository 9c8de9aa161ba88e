//go:build !linux && !windows

package cli

import "io"

// openTerminal reports no terminal: only platforms that run plugins have status lines and colors.
func openTerminal(io.Writer) (restore func(), ok bool) { return nil, false }
