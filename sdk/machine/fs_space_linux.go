package machine

import (
	"errors"
	"io/fs"
	"math"
	"path"

	"golang.org/x/sys/unix"
)

// Free returns how many bytes a process without privileges can still write to the file system of name. When name does not
// exist, the file system of the nearest directory above it counts. Only Linux has it, elsewhere it is ErrUnsupported.
func (f *FS) Free(name string) (int64, error) {
	bytes, err := f.free(name)
	return bytes, f.failed("statfs", name, err)
}

func (f *FS) free(name string) (bytes int64, err error) {
	if err := checkName(name); err != nil {
		return 0, err
	}
	reference, err := f.lookup(name)
	for name != "/" && errors.Is(err, fs.ErrNotExist) {
		name = path.Dir(path.Clean(name))
		reference, err = f.lookup(name)
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = closed(reference, err) }()
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(reference.Fd()), &s); err != nil {
		return 0, err
	}
	if s.Frsize <= 0 || s.Bavail > uint64(math.MaxInt64/s.Frsize) {
		return math.MaxInt64, nil
	}
	return int64(s.Bavail) * s.Frsize, nil
}
