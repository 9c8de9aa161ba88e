package machine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/atomicfile"
	"github.com/machineadm/machineadm/internal/rooted"
)

// checkName refuses "..", which the kernel and a reader of the path understand differently behind a link. In the target of
// a link it has the kernel's meaning.
func checkName(name string) error {
	if !strings.HasPrefix(name, "/") || strings.ContainsRune(name, 0) {
		return fmt.Errorf("%w: not an absolute path of the target", fs.ErrInvalid)
	}
	for segment := range strings.SplitSeq(name, "/") {
		if segment == ".." {
			return fmt.Errorf("%w: the path has a .. segment", fs.ErrInvalid)
		}
	}
	return nil
}

// lookup opens name, links followed inside the root, as a reference (O_PATH).
func (f *FS) lookup(name string) (*os.File, error) { return f.handle.Lookup(name) }

// openAt opens an entry of a directory, without following a link.
func openAt(dir *os.File, base string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), base, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), base), nil
}

func (f *FS) open(name string) (*os.File, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	return f.handle.OpenFile(name)
}

func (f *FS) stat(name string) (_ Info, err error) {
	if err := checkName(name); err != nil {
		return Info{}, err
	}
	reference, err := f.lookup(name)
	if err != nil {
		return Info{}, err
	}
	defer func() { err = closed(reference, err) }()
	return describe(reference)
}

func describe(file *os.File) (Info, error) {
	info, err := file.Stat()
	if err != nil {
		return Info{}, withoutPath(err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Info{}, fmt.Errorf("the owner of the file: %w", ErrUnsupported)
	}
	return Info{Mode: info.Mode(), UID: int(owner.Uid), GID: int(owner.Gid), Size: info.Size()}, nil
}

// parent opens the directory that holds name and returns the last segment, "." for the root itself.
func (f *FS) parent(name string) (*os.File, string, error) {
	if err := checkName(name); err != nil {
		return nil, "", err
	}
	dir, base := path.Split(path.Clean(name))
	handle, err := f.lookup(dir)
	return handle, cmp.Or(base, "."), err
}

func (f *FS) lstat(name string) (_ Info, err error) {
	dir, base, err := f.parent(name)
	if err != nil {
		return Info{}, err
	}
	defer func() { err = closed(dir, err) }()
	return lstatAt(dir, base)
}

func lstatAt(dir *os.File, base string) (_ Info, err error) {
	reference, err := openAt(dir, base, unix.O_PATH)
	if err != nil {
		return Info{}, err
	}
	defer func() { err = closed(reference, err) }()
	return describe(reference)
}

func (f *FS) readDir(name string) (_ []string, err error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	dir, err := f.handle.OpenDir(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = closed(dir, err) }()
	return dir.Readdirnames(-1)
}

func (f *FS) readlink(name string) (_ string, err error) {
	dir, base, err := f.parent(name)
	if err != nil {
		return "", err
	}
	defer func() { err = closed(dir, err) }()
	return rooted.Readlink(dir, base)
}

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
