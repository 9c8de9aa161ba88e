//go:build !linux && !windows

package cli

import "io"

// openTerminal reports no terminal: status lines and colors exist on the platforms that run plugins.
func openTerminal(io.Writer) (restore func(), ok bool) { return nil, false }
