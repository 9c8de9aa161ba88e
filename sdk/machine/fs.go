package machine

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/internal/rooted"
)

const (
	// MaxFileBytes is the size limit of ReadFile.
	MaxFileBytes = 64 << 20
	// parentMode is the mode of the directories that a write creates.
	parentMode = 0o755
)

// FS is the file system of the target below its root. Every name is an absolute path of the target, such as
// "/etc/sysctl.d/x.conf" (on Windows `C:\ProgramData\x`), without ".." segments. Links are resolved as on the target
// itself: an absolute link of an image leads to a file of the image.
//
// On Linux every access uses descriptors, so that a directory that is replaced by a link at any moment cannot lead out of
// the root. A write refuses, with ErrUnsafe, a directory that others can write, or whose ancestors inside the root others
// can replace: one that belongs neither to root nor to this user, or that is writable by its group or by everyone (a sticky
// one such as /tmp may be an ancestor, but not the directory itself). On Windows os.Root confines the access, and access
// lists of directories are not checked.
//
// Errors are *fs.PathError and have the path as this process sees it, including the root.
type FS struct {
	root   string
	handle *rooted.Root
	before func()
	// rehearsal receives the changes of a plan; nil: they are made.
	rehearsal *rehearsal
}

// Before returns the same file system, which calls a function ahead of each change. Tests end a plugin there, see
// machinetest.Crash.
func (f *FS) Before(change func()) *FS { return &FS{f.root, f.handle, change, f.rehearsal} }

// Info describes a file.
type Info struct {
	// Mode has the type and permission bits. On Windows these only show whether others have access (0600: no).
	Mode fs.FileMode
	// UID and GID are -1 on Windows.
	UID, GID int
	// Size is in bytes.
	Size int64
}

// OpenFS opens the file system whose root directory is root; "" and "/" mean the live machine.
func OpenFS(root string) (*FS, error) {
	below := ""
	if !live(root) {
		absolute, err := filepath.Abs(root)
		if err != nil {
			return nil, err
		}
		root, below = absolute, absolute
	}
	handle, err := rooted.OpenRoot(below)
	if err != nil {
		return nil, fmt.Errorf("open the root directory: %w", err)
	}
	return &FS{root: root, handle: handle}, nil
}

// Close releases the root. The FS cannot be used after it.
func (f *FS) Close() error { return f.handle.Close() }

// changing precedes each change.
func (f *FS) changing() {
	if f.before != nil {
		f.before()
	}
}

// failed adds the operation and the path with its root.
func (f *FS) failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	path := name
	if !live(f.root) {
		path = filepath.Join(f.root, name[len(filepath.VolumeName(name)):])
	}
	return &fs.PathError{Op: op, Path: path, Err: withoutPath(err)}
}

func live(root string) bool { return root == "" || root == "/" }

// readAll reads a file of at most limit bytes and closes it.
func readAll(file *os.File, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%w: more than %d MiB", ErrTooLarge, limit>>20)
	}
	if err = closed(file, err); err != nil {
		return nil, err
	}
	return data, nil
}

// closed closes a file and returns the first error.
func closed(file io.Closer, err error) error { return cmp.Or(err, file.Close()) }
