//go:build !linux && !windows

package cli

import (
	"io"
	"os"
)

// openTerminal finds none: only the platforms that the product is for are drawn on.
func openTerminal(io.Writer) (*terminal, bool) { return nil, false }

func sameTerminal(_, _ io.Writer) bool { return false }

// Size implements reporting.Terminal.
func (t *terminal) Size() (width, height int) { return 0, 0 }

func continued() []os.Signal { return nil }
