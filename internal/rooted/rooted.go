// Package rooted reads files below the root directory of a machine, live or an unpacked image.
package rooted

import (
	"errors"
	"os"
	"path/filepath"
)

// ErrNotRegular reports a directory, a device, a FIFO or a socket.
var ErrNotRegular = errors.New("is not a regular file")

// Open opens a regular file below root for reading. Links, also absolute ones, are resolved relative to root and never
// lead out of it. Other files are not opened at all: opening a device can have an effect.
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
