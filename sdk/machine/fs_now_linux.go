package machine

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/rooted"
)

// maxLinks bounds a chain of links, as in the kernel.
const maxLinks = 40

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

func (f *FS) openNow(name string) (*os.File, error) { return f.handle.OpenFile(name) }

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

func (f *FS) lstatNow(name string) (_ Info, err error) {
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

func (f *FS) readlinkNow(name string) (_ string, err error) {
	dir, base, err := f.parent(name)
	if err != nil {
		return "", err
	}
	defer func() { err = closed(dir, err) }()
	return rooted.Readlink(dir, base)
}
