//go:build !linux && !windows

package rooted

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

func unsupported() error {
	return fmt.Errorf("rooted on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Root is a directory that names are resolved in.
type Root struct{}

// OpenRoot is not supported on this operating system.
func OpenRoot(string) (*Root, error) { return nil, unsupported() }

// Close is not supported on this operating system.
func (*Root) Close() error { return unsupported() }

// OpenFile is not supported on this operating system.
func (*Root) OpenFile(string) (*os.File, error) { return nil, unsupported() }

// OpenDir is not supported on this operating system.
func (*Root) OpenDir(string) (*os.File, error) { return nil, unsupported() }

// Readlink is not supported on this operating system.
func Readlink(*os.File, string) (string, error) { return "", unsupported() }
