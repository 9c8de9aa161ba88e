package machine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/atomicfile"
	"github.com/machineadm/machineadm/internal/rooted"
)

// openParent opens the directory in which the entry base is to be created or replaced, and creates what is missing of it.
// With follow, links in the last segment are followed, so that the file at their end is replaced. In a rehearsal nothing is created, and
// the directory is nil where it is missing.
func (f *FS) openParent(name string, follow bool) (_ *os.File, base string, err error) {
	if err := checkName(name); err != nil {
		return nil, "", err
	}
	name = path.Clean(name)
	for range maxLinks {
		// The target of a link is not cleaned: its ".." means the parent of the directory that a link before it leads to.
		parent, base := path.Split(strings.TrimRight(name, "/"))
		if base == "" || base == "." || base == ".." {
			return nil, "", unix.EISDIR
		}
		if atomicfile.Reserved(base) {
			return nil, "", ErrReserved
		}
		dir, err := f.safeDirectory(parent)
		if errors.Is(err, fs.ErrNotExist) {
			if err = f.createDirectory(parent, parentMode); err == nil && f.rehearsal != nil {
				return nil, base, nil
			}
			if err == nil {
				dir, err = f.safeDirectory(parent)
			}
		}
		if err != nil {
			return nil, "", err
		}
		info, err := lstatAt(dir, base)
		switch {
		case errors.Is(err, unix.ENOENT), err == nil && info.Mode.IsRegular():
			return dir, base, nil
		case err != nil:
		case info.Mode.Type() == fs.ModeSymlink && !follow:
			return dir, base, nil
		case info.Mode.Type() == fs.ModeSymlink:
			if name, err = rooted.Readlink(dir, base); !strings.HasPrefix(name, "/") {
				name = parent + name
			}
			if err == nil && strings.HasSuffix(name, "/") { // a directory for every reader
				err = unix.EISDIR
			}
		case info.Mode.IsDir():
			err = unix.EISDIR
		default:
			err = ErrNotRegular
		}
		if err = closed(dir, err); err != nil {
			return nil, "", err
		}
	}
	return nil, "", unix.ELOOP
}

// createDirectory creates a directory and those above it that are missing, each in a directory that only this user and
// root can write.
func (f *FS) createDirectory(name string, mode fs.FileMode) (err error) {
	existing, err := f.lookup(name)
	if err == nil {
		info, err := describe(existing)
		if err == nil && !info.Mode.IsDir() {
			err = unix.ENOTDIR
		}
		return closed(existing, err)
	}
	parent, base := path.Split(strings.TrimRight(name, "/"))
	if !errors.Is(err, fs.ErrNotExist) || base == ".." {
		return err
	}
	if err := f.createDirectory(parent, mode); err != nil || base == "." {
		return err
	}
	dir, err := f.safeDirectory(parent)
	if f.rehearsal != nil && errors.Is(err, fs.ErrNotExist) {
		return nil // it is to be created as well
	}
	if err != nil {
		return err
	}
	defer func() { err = closed(dir, err) }()
	if f.rehearsal != nil {
		return cmp.Or(atomicfile.CheckRemoval(dir, base), notInTheWay(dir, base))
	}
	switch err := unix.Mkdirat(int(dir.Fd()), base, uint32(mode.Perm())); {
	case errors.Is(err, unix.EEXIST):
		return notInTheWay(dir, base)
	case err != nil:
		return err
	}
	// By name, which works whatever the umask left of the mode, and is safe where only this user and root can write.
	if err := unix.Fchmodat(int(dir.Fd()), base, uint32(mode.Perm()), 0); err != nil {
		return fmt.Errorf("set the mode of the new directory %s: %w", base, err)
	}
	return withoutPath(dir.Sync())
}

// notInTheWay refuses anything but a directory where one is to be created: a dangling link. Another process can have created it.
func notInTheWay(dir *os.File, base string) error {
	info, err := lstatAt(dir, base)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err == nil && info.Mode.Type() == fs.ModeSymlink:
		return fmt.Errorf("%s is a link that leads to nothing: %w", base, unix.ENOTDIR)
	case err == nil && !info.Mode.IsDir():
		return fmt.Errorf("%s exists and is not a directory: %w", base, unix.ENOTDIR)
	}
	return err
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
