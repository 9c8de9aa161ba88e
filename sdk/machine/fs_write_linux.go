package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/atomicfile"
)

func (f *FS) write(name string, data []byte, o atomicfile.Options) error {
	dir, base, err := f.openParent(name, true)
	if err != nil {
		return err
	}
	return closed(dir, atomicfile.Write(dir, base, data, o))
}

func (f *FS) symlink(target, name string) error {
	dir, base, err := f.openParent(name, false)
	if err != nil {
		return err
	}
	return closed(dir, atomicfile.Symlink(dir, target, base))
}

// safeParent opens the existing directory that holds name for a change in it, and returns the last segment.
func (f *FS) safeParent(name string) (*os.File, string, error) {
	if err := checkName(name); err != nil {
		return nil, "", err
	}
	parent, base := path.Split(path.Clean(name))
	if base == "" {
		return nil, "", fmt.Errorf("%w: the root itself", fs.ErrInvalid)
	}
	dir, err := f.safeDirectory(parent)
	return dir, base, err
}

// setAttributes changes attributes of a file or directory that cannot be replaced meanwhile.
func (f *FS) setAttributes(name string, change func(*os.File) error) (err error) {
	dir, base, err := f.safeParent(name)
	if err != nil {
		return err
	}
	defer func() { err = closed(dir, err) }()
	info, err := lstatAt(dir, base)
	if err != nil {
		return err
	}
	if !info.Mode.IsRegular() && !info.Mode.IsDir() {
		return ErrNotRegular
	}
	file, err := openAt(dir, base, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer func() { err = closed(file, err) }()
	if err := change(file); err != nil {
		return withoutPath(err)
	}
	return withoutPath(file.Sync())
}

func (f *FS) remove(name string) (err error) {
	dir, base, err := f.safeParent(name)
	if errors.Is(err, unix.ENOTDIR) {
		return fs.ErrNotExist
	}
	if err != nil {
		return err
	}
	defer func() { err = closed(dir, err) }()
	err = unix.Unlinkat(int(dir.Fd()), base, 0)
	if errors.Is(err, unix.EISDIR) {
		err = unix.Unlinkat(int(dir.Fd()), base, unix.AT_REMOVEDIR)
	}
	if err != nil {
		return err
	}
	return withoutPath(dir.Sync())
}
