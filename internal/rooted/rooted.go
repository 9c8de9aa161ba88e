// Package rooted reads files below the root directory of a machine, live or an unpacked image.
package rooted

import (
	"os"
	"path/filepath"
)

// Open opens a regular file below root for reading. Links, also absolute ones, are resolved relative to root and never
// lead out of it. Other files are not opened at all: opening a device can have an effect.
func Open(root, path string) (*os.File, error) {
	file, err := open(root, path)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: filepath.Join(root, path), Err: withoutPath(err)}
	}
	return file, nil
}
