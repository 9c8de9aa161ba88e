//go:build !linux && !windows

package trust

import (
	"errors"
	"os"
)

func open(path string, _ Policy) (*os.File, error) {
	return nil, &os.PathError{Op: "check", Path: path, Err: errors.ErrUnsupported}
}

func directory(path string, _ Policy) (string, error) {
	return "", &os.PathError{Op: "check", Path: path, Err: errors.ErrUnsupported}
}
