//go:build unix

package cli

import (
	"errors"
	"syscall"
)

// brokenPipe reports whether the reader of standard output has ended.
func brokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
