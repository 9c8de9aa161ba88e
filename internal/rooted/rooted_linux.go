package rooted

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"github.com/cyphar/filepath-securejoin/pathrs-lite"
	"golang.org/x/sys/unix"
)

// Root is a directory that confines path resolution. Every access uses descriptors, so that a directory that is replaced
// by a link at any moment cannot lead out of it.
type Root struct{ dir *os.File }

// OpenRoot opens a root; "" means the root of the live machine.
func OpenRoot(dir string) (*Root, error) {
	if dir == "" {
		dir = "/"
	}
	handle, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &Root{dir: handle}, nil
}

// Close releases the root.
func (r *Root) Close() error { return r.dir.Close() }

func open(root, path string) (_ *os.File, err error) {
	r, err := OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return r.OpenFile(path)
}

// File returns the root itself, as a reference (O_PATH).
func (r *Root) File() *os.File { return r.dir }

// Lookup opens name as a reference (O_PATH), which has no effect on a device.
func (r *Root) Lookup(name string) (*os.File, error) {
	file, err := r.openat2(name)
	if err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return file, err
	}
	// The library handles kernels without openat2, and races.
	file, err = pathrs.OpenatInRoot(r.dir, name)
	if err != nil {
		return nil, withoutPath(err)
	}
	return file, nil
}

// openat2 is the library's first attempt without its verification of the resulting path, which mounts a proc file system
// and costs half a millisecond in each process.
func (r *Root) openat2(name string) (*os.File, error) {
	defer runtime.KeepAlive(r.dir)
	fd, err := unix.Openat2(int(r.dir.Fd()), name, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// OpenFile opens a regular file for reading. Any other file is refused without being opened.
func (r *Root) OpenFile(name string) (_ *os.File, err error) {
	reference, err := r.Lookup(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reference.Close()) }()
	info, err := reference.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%w: %w", ErrNotRegular, unix.EISDIR)
	case !info.Mode().IsRegular():
		return nil, ErrNotRegular
	}
	return reopen(reference)
}

// OpenDir opens a directory for listing, for writing and for fsync.
func (r *Root) OpenDir(name string) (*os.File, error) {
	reference, err := r.Lookup(name)
	if err != nil {
		return nil, err
	}
	return ReopenDir(reference)
}

// ReopenDir turns a reference into a directory that can be listed and synced, and closes the reference.
func ReopenDir(reference *os.File) (*os.File, error) {
	fd, err := unix.Openat(int(reference.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	name := reference.Name()
	if closeErr := reference.Close(); err != nil || closeErr != nil {
		if err == nil {
			return nil, errors.Join(closeErr, unix.Close(fd))
		}
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Readlink returns the target of the link base in dir.
func Readlink(dir *os.File, base string) (string, error) {
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(dir.Fd()), base, buffer)
	runtime.KeepAlive(dir)
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}

// SameFile reports whether two descriptors refer to the same file.
func SameFile(a, b int) (bool, error) {
	var first, second unix.Stat_t
	if err := errors.Join(unix.Fstat(a, &first), unix.Fstat(b, &second)); err != nil {
		return false, err
	}
	return first.Ino == second.Ino && first.Dev == second.Dev, nil
}

// reopen opens the referenced file for reading. O_NONBLOCK avoids a hang on a file that turns out not to be regular.
// Without a usable /proc, the library opens it by other means.
func reopen(reference *os.File) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	defer runtime.KeepAlive(reference)
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(int(reference.Fd())), flags, 0)
	if err != nil {
		return pathrs.Reopen(reference, flags)
	}
	file := os.NewFile(uintptr(fd), reference.Name())
	same, err := SameFile(int(reference.Fd()), fd)
	if same && err == nil {
		return file, nil
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return pathrs.Reopen(reference, flags)
}
