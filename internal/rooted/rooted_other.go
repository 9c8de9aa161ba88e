//go:build !linux

package rooted

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

func open(root, path string) (*os.File, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // the file stays open
	return openFile(dir, strings.TrimLeft(path[len(filepath.VolumeName(path)):], `/\`))
}

func openFile(dir *os.Root, inside string) (*os.File, error) {
	info, err := dir.Stat(inside)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	file, err := dir.Open(inside)
	if err != nil {
		return nil, err
	}
	if now, err := file.Stat(); err != nil || !now.Mode().IsRegular() {
		return nil, errors.Join(ErrNotRegular, err, file.Close())
	}
	return file, nil
}
