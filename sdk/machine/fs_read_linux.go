package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// read returns the content of a regular file.
func (f *FS) read(name string) ([]byte, error) {
	p, at, err := f.planned(name, true)
	switch {
	case err != nil:
		return nil, err
	case p != nil && p.Directory:
		return nil, fmt.Errorf("%w: %w", ErrNotRegular, unix.EISDIR)
	case p != nil:
		return bytes.Clone(p.Content), nil
	}
	file, err := f.openNow(at)
	if err != nil {
		return nil, err
	}
	return readAll(file, MaxFileBytes)
}

func (f *FS) stat(name string) (_ Info, err error) {
	p, at, err := f.planned(name, true)
	if p != nil || err != nil {
		return infoOf(p), err
	}
	reference, err := f.lookup(at)
	if err != nil {
		return Info{}, err
	}
	defer func() { err = closed(reference, err) }()
	return describe(reference)
}

func (f *FS) lstat(name string) (Info, error) {
	p, at, err := f.planned(name, false)
	if p != nil || err != nil {
		return infoOf(p), err
	}
	return f.lstatNow(at)
}

func (f *FS) readDir(name string) (_ []string, err error) {
	p, at, err := f.planned(name, true)
	switch {
	case err != nil:
		return nil, err
	case p != nil && !p.Directory:
		return nil, unix.ENOTDIR
	}
	dir, err := f.handle.OpenDir(at)
	if p != nil && errors.Is(err, fs.ErrNotExist) {
		return f.plannedNames(at, nil), nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = closed(dir, err) }()
	names, err := dir.Readdirnames(-1)
	return f.plannedNames(at, names), err
}

func (f *FS) readlink(name string) (string, error) {
	p, at, err := f.planned(name, false)
	switch {
	case err != nil:
		return "", err
	case p != nil && p.Link == "":
		return "", unix.EINVAL
	case p != nil:
		return p.Link, nil
	}
	return f.readlinkNow(at)
}
