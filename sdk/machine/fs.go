package machine

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/machineadm/machineadm/internal/atomicfile"
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
}

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

// ReadFile returns the contents of a regular file of at most MaxFileBytes. Links are followed. Devices, pipes and
// sockets are refused with ErrNotRegular without being opened.
func (f *FS) ReadFile(name string) ([]byte, error) {
	file, err := f.open(name)
	if err != nil {
		return nil, f.failed("read", name, err)
	}
	data, err := readAll(file, MaxFileBytes)
	return data, f.failed("read", name, err)
}

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

// isAbsent reports whether an error means that a file does not exist.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Stat describes a file. Links are followed.
func (f *FS) Stat(name string) (Info, error) {
	info, err := f.stat(name)
	return info, f.failed("stat", name, err)
}

// Lstat describes a file. A link in the last segment is not followed.
func (f *FS) Lstat(name string) (Info, error) {
	info, err := f.lstat(name)
	return info, f.failed("lstat", name, err)
}

// ReadDir returns the sorted names in a directory.
func (f *FS) ReadDir(name string) (names []string, err error) {
	names, err = f.readDir(name)
	slices.Sort(names)
	return names, f.failed("list", name, err)
}

// Readlink returns the unresolved target of a link.
func (f *FS) Readlink(name string) (string, error) {
	target, err := f.readlink(name)
	return target, f.failed("readlink", name, err)
}

// MkdirAll creates a directory and the missing ones above it, each with exactly this mode. Existing ones stay unchanged.
func (f *FS) MkdirAll(name string, mode fs.FileMode) error {
	return f.failed("mkdir", name, f.mkdirAll(name, mode))
}

// WriteFile replaces or creates a file in one step: a reader, a crash or a full disk leaves the old file or the new one.
// The new file has exactly this mode, whatever the umask, belongs to this process's user, and keeps the SELinux label of
// the old one. Missing directories are created with mode 0755. Where name is a link, the file at its end is replaced or,
// inside the root, created. Anything but a regular file is refused. Windows: no mode, and a link is refused.
func (f *FS) WriteFile(name string, data []byte, mode fs.FileMode) error {
	return f.failed("write", name, f.write(name, data, atomicfile.Options{Mode: mode, KeepLabel: true}))
}

// WriteFileAs is WriteFile with another owner. Windows: ErrUnsupported.
func (f *FS) WriteFileAs(name string, data []byte, mode fs.FileMode, uid, gid int) error {
	o := atomicfile.Options{Mode: mode, KeepLabel: true, Owner: &atomicfile.Owner{UID: uid, GID: gid}}
	return f.failed("write", name, f.write(name, data, o))
}

// Chmod sets exactly this mode of a file or directory. Anything else, links included, is refused with ErrNotRegular. When
// it returns without an error, the mode survives a crash. Windows: ErrUnsupported.
func (f *FS) Chmod(name string, mode fs.FileMode) error {
	return f.failed("chmod", name, f.setAttributes(name, func(file *os.File) error { return file.Chmod(mode) }))
}

// Chown sets user and group of a file or directory, as Chmod does the mode; -1 leaves one unchanged. It removes setuid and
// setgid bits, see chown(2).
func (f *FS) Chown(name string, uid, gid int) error {
	return f.failed("chown", name, f.setAttributes(name, func(file *os.File) error { return file.Chown(uid, gid) }))
}

// LookupOwner returns the numbers of a user and a group in the target's own /etc/passwd and /etc/group, which can differ
// from those of this machine. An empty group means that of the user, an empty user is -1. fs.ErrNotExist when the target
// has no such user or group. Windows: ErrUnsupported.
func (f *FS) LookupOwner(user, group string) (uid, gid int, err error) {
	uid, gid = -1, -1
	if user != "" {
		if uid, gid, err = f.account("/etc/passwd", user, 4); err != nil {
			return -1, -1, err
		}
	}
	if group != "" {
		if gid, _, err = f.account("/etc/group", group, 3); err != nil {
			return -1, -1, err
		}
	}
	return uid, gid, nil
}

// account returns the number in the third field of an entry of passwd(5) or group(5), and that in the last of the first
// count fields.
func (f *FS) account(file, name string, count int) (first, last int, err error) {
	if runtime.GOOS == "windows" {
		return 0, 0, fmt.Errorf("look up the owner of a file: %w", ErrUnsupported)
	}
	data, err := f.ReadFile(file)
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Split(strings.TrimRight(line, "\n"), ":")
		if len(fields) < count || fields[0] != name {
			continue
		}
		id, err := strconv.ParseUint(fields[2], 10, 32)
		group, groupErr := strconv.ParseUint(fields[count-1], 10, 32)
		if err != nil || groupErr != nil || max(id, group) == math.MaxUint32 { // for chown(2) -1, which changes nothing
			return 0, 0, f.failed("read", file, fmt.Errorf("the entry %q has no number", name))
		}
		return int(id), int(group), nil
	}
	return 0, 0, f.failed("read", file, fmt.Errorf("no entry %q: %w", name, fs.ErrNotExist))
}

// Symlink replaces or creates a link in one step. Only a file or a link is replaced. Missing directories are created with
// mode 0755. The target is not checked.
func (f *FS) Symlink(target, name string) error {
	return f.failed("symlink", name, f.symlink(target, name))
}

// Remove removes a file, a link or an empty directory. An absent one is no error. The removal is durable.
func (f *FS) Remove(name string) error {
	err := f.remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return f.failed("remove", name, err)
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

func withoutPath(err error) error {
	for {
		inner, ok := err.(*fs.PathError) //nolint:errorlint // removes only outer layers, each of which repeats a path
		if !ok {
			return err
		}
		err = inner.Err
	}
}
