package cli

import (
	"errors"

	"golang.org/x/sys/windows"
)

// brokenPipe reports whether the reader of standard output has ended.
func brokenPipe(err error) bool {
	return errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_NO_DATA)
}
