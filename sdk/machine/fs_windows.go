package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/internal/atomicfile"
)

// enter calls use with the directory that confines an access to name, and with name relative to it.
func (f *FS) enter(name string, use func(root *os.Root, relative string) error) error {
	root, relative, err := f.handle.Enter(name)
	if err != nil {
		return err
	}
	return closed(root, use(root, relative))
}

func (f *FS) read(name string) ([]byte, error) {
	file, err := f.handle.OpenFile(name)
	if err != nil {
		return nil, err
	}
	return readAll(file, MaxFileBytes)
}

func (f *FS) stat(name string) (Info, error) { return f.describe(name, (*os.Root).Stat) }

func (f *FS) lstat(name string) (Info, error) { return f.describe(name, (*os.Root).Lstat) }

func (f *FS) describe(name string, stat func(*os.Root, string) (fs.FileInfo, error)) (described Info, err error) {
	err = f.enter(name, func(root *os.Root, relative string) error {
		info, err := stat(root, relative)
		if err != nil {
			return err
		}
		described = Info{Mode: info.Mode() &^ deniedToOthers(root, relative, info), UID: -1, GID: -1, Size: info.Size()}
		return nil
	})
	return described, err
}

// deniedToOthers returns the mode bits that a file does not have, see atomicfile.Options. A file that cannot be opened now
// counts as open to everyone, so that it is rewritten where it must not be.
func deniedToOthers(root *os.Root, relative string, info fs.FileInfo) fs.FileMode {
	if !info.Mode().IsRegular() {
		return 0
	}
	file, err := root.Open(relative)
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }() // read only
	if private, err := atomicfile.Closed(file); err != nil || !private {
		return 0
	}
	return 0o077
}

func (f *FS) readDir(name string) (names []string, err error) {
	err = f.enter(name, func(root *os.Root, relative string) error {
		dir, err := root.Open(relative)
		if err == nil {
			names, err = dir.Readdirnames(-1)
			err = closed(dir, err)
		}
		return err
	})
	return names, err
}

func (f *FS) readlink(name string) (target string, err error) {
	err = f.enter(name, func(root *os.Root, relative string) (err error) {
		target, err = root.Readlink(relative)
		return err
	})
	return target, err
}

func (f *FS) mkdirAll(name string, mode fs.FileMode) error {
	return f.enter(name, func(root *os.Root, relative string) error { return root.MkdirAll(relative, mode) })
}

// openParent opens the directory in which the entry base is to be created or replaced. Its containment is checked when it
// is opened; the replacement is by name, see atomicfile.Write.
func (f *FS) openParent(name string) (_ *os.File, base string, err error) {
	err = f.enter(name, func(root *os.Root, relative string) error {
		if base = filepath.Base(relative); base == "." {
			return fmt.Errorf("%w: the root itself", fs.ErrInvalid)
		}
		if parent := filepath.Dir(relative); parent != "." {
			return root.MkdirAll(parent, parentMode)
		}
		return nil
	})
	if err != nil {
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
	dir, base, err := f.openParent(name)
	if err != nil {
		return err
	}
	return closed(dir, atomicfile.Write(dir, base, data, o))
}

func (f *FS) setAttributes(string, func(*os.File) error, func(*PlannedFile)) error {
	return ErrUnsupported
}

func (f *FS) symlink(target, name string) error {
	dir, base, err := f.openParent(name)
	if err != nil {
		return err
	}
	return closed(dir, atomicfile.Symlink(dir, target, base))
}

func (f *FS) remove(name string) error {
	return f.enter(name, func(root *os.Root, relative string) error { return root.Remove(relative) })
}

// Free returns ErrUnsupported: the free space of a file system is read on Linux only.
func (f *FS) Free(name string) (int64, error) { return 0, f.failed("statfs", name, ErrUnsupported) }
