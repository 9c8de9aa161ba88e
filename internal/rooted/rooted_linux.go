package rooted

import (
	"errors"
	"os"
	"strconv"

	"github.com/cyphar/filepath-securejoin/pathrs-lite"
	"golang.org/x/sys/unix"
)

func open(root, path string) (*os.File, error) {
	dir, err := os.OpenFile(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // only a reference
	reference, err := lookup(dir, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reference.Close() }() // as above
	info, err := reference.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	// Through the descriptor: the name can lead elsewhere by now.
	return os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(reference.Fd())), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
}

// lookup finds the file without opening it (O_PATH). The library does the same on kernels without openat2, at the price
// of a proc file system of its own.
func lookup(dir *os.File, path string) (*os.File, error) {
	fd, err := unix.Openat2(int(dir.Fd()), path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	switch {
	case err == nil:
		return os.NewFile(uintptr(fd), path), nil
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return nil, err
	}
	return pathrs.OpenatInRoot(dir, path)
}
