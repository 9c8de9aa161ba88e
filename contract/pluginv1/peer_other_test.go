//go:build !linux

package pluginv1_test

import "errors"

func usurped(string) error { return errors.ErrUnsupported }
