package machine

import (
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

	"github.com/machineadm/machineadm/internal/atomicfile"
	"github.com/machineadm/machineadm/internal/rooted"
)

const (
	// MaxFileBytes is the largest file that ReadFile reads.
	MaxFileBytes = 64 << 20
	// parentMode is that of directories which a write makes on its way.
	parentMode = 0o755
)

// FS is the file system of the target below its root. Every name is an absolute path of the target, such as
// "/etc/sysctl.d/x.conf" (on Windows `C:\ProgramData\x`), without ".." segments. Links are followed as the target
// itself would follow them: an absolute link of an image leads to a place in the image.
//
// On Linux every access goes through descriptors, so that a directory that is exchanged for a link at any moment
// cannot lead out of the root. What changes something refuses, with ErrUnsafe, a directory that others can write,
// or whose ancestors inside the root others can exchange: one that is not owned by root or by this user, or that is
// writable by its group or by everyone (a sticky one such as /tmp may be an ancestor, not the directory itself).
// On Windows containment is that of os.Root; access lists of directories are not judged.
//
// Errors are *fs.PathError and name the path as this process sees it, the root included.
type FS struct {
	root   string
	handle *rooted.Root
}

// Info is what the file system says of a file.
type Info struct {
	// Mode has the type and permission bits. On Windows these tell only whether a file is closed to others (0600).
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

// Close releases the root. Nothing of the FS may be used after it.
func (f *FS) Close() error { return f.handle.Close() }

// ReadFile returns the contents of a regular file of at most MaxFileBytes. Links are followed. Devices, pipes and
// sockets are refused with ErrNotRegular without being opened.
func (f *FS) ReadFile(name string) (data []byte, err error) {
	file, err := f.open(name)
	if err != nil {
		return nil, f.failed("read", name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	data, err = io.ReadAll(io.LimitReader(file, MaxFileBytes+1))
	if err == nil && len(data) > MaxFileBytes {
		err = fmt.Errorf("%w: more than %d MiB", ErrTooLarge, MaxFileBytes>>20)
	}
	if err != nil {
		return nil, f.failed("read", name, err)
	}
	return data, nil
}

// Stat describes the file that name leads to, links followed.
func (f *FS) Stat(name string) (Info, error) {
	info, err := f.stat(name)
	return info, f.failed("stat", name, err)
}

// Lstat describes name itself: a link in its last segment is not followed.
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

// Readlink returns what a link says, as it says it.
func (f *FS) Readlink(name string) (string, error) {
	target, err := f.readlink(name)
	return target, f.failed("readlink", name, err)
}

// MkdirAll makes a directory and those above it that are missing, each with exactly this mode. One that exists is
// left as it is.
func (f *FS) MkdirAll(name string, mode fs.FileMode) error {
	return f.failed("mkdir", name, f.mkdirAll(name, mode))
}

// WriteFile puts data at name in one step: a reader, a crash or a full disk meets the old file or the new one. The
// new file has exactly this mode, whatever the umask, belongs to this process's user, and keeps the SELinux label of
// the old one. Directories that are missing are made with mode 0755. Where name is a link, the file that it leads to
// is replaced or, inside the root, made. Anything but a regular file is refused. Windows: no mode, and a link is
// refused.
func (f *FS) WriteFile(name string, data []byte, mode fs.FileMode) error {
	return f.failed("write", name, f.write(name, data, atomicfile.Options{Mode: mode, KeepLabel: true}))
}

// WriteFileAs is WriteFile for a file that shall belong to another user or group. Windows: ErrUnsupported.
func (f *FS) WriteFileAs(name string, data []byte, mode fs.FileMode, uid, gid int) error {
	o := atomicfile.Options{Mode: mode, KeepLabel: true, Owner: &atomicfile.Owner{UID: uid, GID: gid}}
	return f.failed("write", name, f.write(name, data, o))
}

// Chmod gives a file or directory exactly this mode. A link is refused with ErrNotRegular, and so is what is neither. When
// it returns without an error, the mode survives a crash. Windows: ErrUnsupported.
func (f *FS) Chmod(name string, mode fs.FileMode) error {
	return f.failed("chmod", name, f.amend(name, func(file *os.File) error { return file.Chmod(mode) }))
}

// Chown gives a file or directory to a user and a group; -1 leaves that one. It is otherwise as Chmod, and takes setuid and
// setgid bits away, as chown(2) does.
func (f *FS) Chown(name string, uid, gid int) error {
	return f.failed("chown", name, f.amend(name, func(file *os.File) error { return file.Chown(uid, gid) }))
}

// LookupOwner returns the numbers of a user and a group in the target's own /etc/passwd and /etc/group, which need not be
// those of this machine. An empty group is that of the user, an empty user is -1. fs.ErrNotExist when the target has no
// such user or group. Windows: ErrUnsupported.
func (f *FS) LookupOwner(user, group string) (uid, gid int, err error) {
	uid, gid = -1, -1
	if user != "" {
		fields, err := f.account("/etc/passwd", user, 4)
		if err != nil {
			return -1, -1, err
		}
		uid, gid = fields[0], fields[1]
	}
	if group != "" {
		fields, err := f.account("/etc/group", group, 3)
		if err != nil {
			return -1, -1, err
		}
		gid = fields[0]
	}
	return uid, gid, nil
}

// account returns the numbers that begin at the third field of an entry of passwd(5) or group(5), which has that many fields
// at least.
func (f *FS) account(file, name string, count int) ([]int, error) {
	if runtime.GOOS == "windows" {
		return nil, fmt.Errorf("look up the owner of a file: %w", ErrUnsupported)
	}
	data, err := f.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Split(strings.TrimRight(line, "\n"), ":")
		if len(fields) < count || fields[0] != name {
			continue
		}
		var numbers []int
		for _, field := range fields[2:count] {
			number, err := strconv.ParseUint(field, 10, 32)
			if err != nil || number == math.MaxUint32 { // which is -1, and means to leave an owner
				return nil, f.failed("read", file, fmt.Errorf("the entry %q has no number", name))
			}
			numbers = append(numbers, int(number))
		}
		return numbers, nil
	}
	return nil, f.failed("read", file, fmt.Errorf("no entry %q: %w", name, fs.ErrNotExist))
}

// Symlink puts a link that says target at name in one step, in place of a file or link that is there. Directories
// that are missing are made with mode 0755. target is not judged.
func (f *FS) Symlink(target, name string) error {
	return f.failed("symlink", name, f.symlink(target, name))
}

// Remove removes a file, a link or an empty directory. One that is absent is no error. The removal is durable.
func (f *FS) Remove(name string) error {
	err := f.remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return f.failed("remove", name, err)
}

// failed names the path as a person would look for it, once.
func (f *FS) failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	path := name
	if !live(f.root) {
		path = filepath.Join(f.root, stripVolume(name))
	}
	if inner, ok := err.(*fs.PathError); ok { //nolint:errorlint // Only an outermost one says no more than ours.
		err = inner.Err
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

func stripVolume(name string) string { return name[len(filepath.VolumeName(name)):] }
