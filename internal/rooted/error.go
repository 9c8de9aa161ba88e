package rooted

import (
	"errors"
	"os"
)

// ErrNotRegular reports a directory, a device, a FIFO or a socket.
var ErrNotRegular = errors.New("is not a regular file")

func withoutPath(err error) error {
	for {
		at, ok := errors.AsType[*os.PathError](err)
		if !ok {
			return err
		}
		err = at.Err
	}
}
