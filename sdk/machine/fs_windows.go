package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/internal/atomicfile"
)

func (f *FS) open(name string) (*os.File, error) { return f.handle.OpenFile(name) }

func (f *FS) stat(name string) (Info, error) { return f.describe(name, (*os.Root).Stat) }

func (f *FS) lstat(name string) (Info, error) { return f.describe(name, (*os.Root).Lstat) }

func (f *FS) describe(name string, look func(*os.Root, string) (fs.FileInfo, error)) (_ Info, err error) {
	root, relative, err := f.handle.Enter(name)
	if err != nil {
		return Info{}, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	info, err := look(root, relative)
	if err != nil {
		return Info{}, err
	}
	return Info{Mode: info.Mode() &^ forOthers(root, relative, info), UID: -1, GID: -1, Size: info.Size()}, nil
}

// forOthers are the bits of a mode that a file does not have: see atomicfile.Options. One that cannot be opened now is
// taken for open to all, so that it is written anew where it must not be.
func forOthers(root *os.Root, relative string, info fs.FileInfo) fs.FileMode {
	if !info.Mode().IsRegular() {
		return 0
	}
	file, err := root.Open(relative)
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }() // only looked at
	if closed, err := atomicfile.Closed(file); err != nil || !closed {
		return 0
	}
	return 0o077
}

func (f *FS) readDir(name string) (_ []string, err error) {
	root, relative, err := f.handle.Enter(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	dir, err := root.Open(relative)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return dir.Readdirnames(-1)
}

func (f *FS) readlink(name string) (_ string, err error) {
	root, relative, err := f.handle.Enter(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return root.Readlink(relative)
}

func (f *FS) mkdirAll(name string, mode fs.FileMode) (err error) {
	root, relative, err := f.handle.Enter(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return root.MkdirAll(relative, mode)
}

// place opens the directory in which base shall be replaced. Containment was checked when it was opened; the
// replacement itself goes by name, see atomicfile.Write.
func (f *FS) place(name string) (_ *os.File, base string, err error) {
	root, relative, err := f.handle.Enter(name)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	parent, base := filepath.Dir(relative), filepath.Base(relative)
	if base == "." {
		return nil, "", fmt.Errorf("%w: the root itself", fs.ErrInvalid)
	}
	if err := root.MkdirAll(parent, parentMode); err != nil {
		return nil, "", err
	}
	dir, err := f.handle.OpenDir(filepath.Dir(name))
	return dir, base, err
}

func (f *FS) write(name string, data []byte, o atomicfile.Options) (err error) {
	switch info, err := f.lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case info.Mode.Type() == fs.ModeSymlink:
		return fmt.Errorf("writing through a link: %w", ErrUnsupported)
	case !info.Mode.IsRegular():
		return ErrNotRegular
	}
	dir, base, err := f.place(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return atomicfile.Write(dir, base, data, o)
}

func (f *FS) amend(string, func(*os.File) error) error { return ErrUnsupported }

func (f *FS) symlink(target, name string) (err error) {
	dir, base, err := f.place(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return atomicfile.Symlink(dir, target, base)
}

func (f *FS) remove(name string) (err error) {
	root, relative, err := f.handle.Enter(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return root.Remove(relative)
}
