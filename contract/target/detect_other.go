//go:build !linux && !windows

package target

import (
	"errors"
	"fmt"
	"runtime"
)

func detect(string) (Target, error) {
	return Target{}, fmt.Errorf("operating system %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
