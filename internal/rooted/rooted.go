// Package rooted reads files below a directory that stands for the root of a machine, such as an unpacked image.
package rooted

import (
	"errors"
	"os"
	"path/filepath"
)

// ErrNotRegular says that the path leads to a directory, a device, a FIFO or a socket.
var ErrNotRegular = errors.New("is not a regular file")

// Open opens a regular file below root for reading. Links, absolute ones too, are followed as the machine itself would
// follow them, and never out of root. Nothing else is opened: opening a device can already have an effect.
func Open(root, path string) (*os.File, error) {
	file, err := open(root, path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: filepath.Join(root, path), Err: withoutPath(err)}
	}
	return file, nil
}

func withoutPath(err error) error {
	for {
		at, ok := errors.AsType[*os.PathError](err)
		if !ok {
			return err
		}
		err = at.Err
	}
}
