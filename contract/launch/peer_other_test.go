//go:build !linux

package launch_test

import (
	"errors"
	"net"
)

func leak() error { return errors.ErrUnsupported }

func usurped(string) error { return errors.ErrUnsupported }

// leaking is for Linux alone.
type leaking struct{ net.Listener }
