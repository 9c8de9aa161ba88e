//go:build !linux

package launch_test

import "errors"

func leak() error { return errors.ErrUnsupported }

func usurped(string) error { return errors.ErrUnsupported }
