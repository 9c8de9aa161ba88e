package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/atomicfile"
)

func (f *FS) write(name string, data []byte, o atomicfile.Options) error {
	if f.rehearsal != nil {
		p := PlannedFile{Content: bytes.Clone(data), Mode: o.Mode, UID: os.Geteuid(), GID: os.Getegid()}
		if o.Owner != nil && o.Owner.UID >= 0 {
			p.UID = o.Owner.UID
		}
		if o.Owner != nil && o.Owner.GID >= 0 {
			p.GID = o.Owner.GID
		}
		return f.rehearsePut(name, true, p, atomicfile.CheckWrite)
	}
	dir, base, err := f.openParent(name, true)
	if err != nil {
		return err
	}
	return closed(dir, atomicfile.Write(dir, base, data, o))
}

func (f *FS) symlink(target, name string) error {
	if f.rehearsal != nil {
		return f.rehearsePut(name, false, PlannedFile{Link: target, UID: os.Geteuid(), GID: os.Getegid()}, atomicfile.CheckSymlink)
	}
	dir, base, err := f.openParent(name, false)
	if err != nil {
		return err
	}
	return closed(dir, atomicfile.Symlink(dir, target, base))
}

// setAttributes changes attributes of a file or directory that cannot be replaced meanwhile.
func (f *FS) setAttributes(name string, change func(*os.File) error, rehearsed func(*PlannedFile)) (err error) {
	if f.rehearsal != nil {
		return f.rehearseAttributes(name, rehearsed)
	}
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
	if f.rehearsal != nil {
		return f.rehearseRemoval(name, atomicfile.CheckRemoval)
	}
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

func (f *FS) mkdirAll(name string, mode fs.FileMode) error {
	if err := checkName(name); err != nil {
		return err
	}
	if mode&^fs.ModePerm != 0 {
		return fmt.Errorf("%w: mode %v has more than permission bits", fs.ErrInvalid, mode)
	}
	if f.rehearsal != nil {
		return f.rehearseDirectory(name, mode)
	}
	return f.createDirectory(name, mode)
}
