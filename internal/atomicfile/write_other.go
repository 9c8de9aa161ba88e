//go:build !linux && !windows

package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

func unsupported() error {
	return fmt.Errorf("atomicfile on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Write is not supported on this operating system.
func Write(*os.File, string, []byte, Options) error { return unsupported() }

// Remove is not supported on this operating system.
func Remove(*os.File, string) error { return unsupported() }
