package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/internal/atomicfile"
)

// ReadFile returns the contents of a regular file of at most MaxFileBytes. Links are followed. Devices, pipes and
// sockets are refused with ErrNotRegular without being opened.
func (f *FS) ReadFile(name string) ([]byte, error) {
	data, err := f.read(name)
	return data, f.failed("read", name, err)
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

// Destination returns the path of the target at which a write to name creates or replaces a file: links are followed inside the root as
// the write follows them, also one that leads to nothing, so that the result has no link and no "..". A segment that does not exist,
// and all behind it, is as in name. Windows: ErrUnsupported.
func (f *FS) Destination(name string) (string, error) {
	destination, err := f.destination(name)
	return destination, f.failed("resolve", name, err)
}

// Reaches returns the first of these directories, or files, in which a write to name would change something, or "". It follows links on
// both sides, and finds a directory by its identity too: through a bind mount, or in other letters where the file system ignores
// their case. Windows: ErrUnsupported.
func (f *FS) Reaches(name string, directories ...string) (string, error) {
	directory, err := f.reaches(name, directories)
	return directory, f.failed("resolve", name, err)
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
	f.changing()
	return f.failed("mkdir", name, f.mkdirAll(name, mode))
}

// WriteFile replaces or creates a file in one step: a reader, a crash or a full disk leaves the old file or the new one.
// The new file has exactly this mode, whatever the umask, belongs to this process's user, and keeps the SELinux label of
// the old one. Missing directories are created with mode 0755. Where name is a link, the file at its end is replaced or,
// inside the root, created. Anything but a regular file is refused. Windows: no mode, and a link is refused.
func (f *FS) WriteFile(name string, data []byte, mode fs.FileMode) error {
	f.changing()
	return f.failed("write", name, f.write(name, data, atomicfile.Options{Mode: mode, KeepLabel: true}))
}

// WriteFileAs is WriteFile with another owner. Windows: ErrUnsupported.
func (f *FS) WriteFileAs(name string, data []byte, mode fs.FileMode, uid, gid int) error {
	f.changing()
	o := atomicfile.Options{Mode: mode, KeepLabel: true, Owner: &atomicfile.Owner{UID: uid, GID: gid}}
	return f.failed("write", name, f.write(name, data, o))
}

// Chmod sets exactly this mode of a file or directory. Anything else, links included, is refused with ErrNotRegular. When
// it returns without an error, the mode survives a crash. Windows: ErrUnsupported.
func (f *FS) Chmod(name string, mode fs.FileMode) error {
	f.changing()
	return f.failed("chmod", name, f.setAttributes(name, func(file *os.File) error { return file.Chmod(mode) },
		func(p *PlannedFile) { p.Mode = mode }))
}

// Chown sets user and group of a file or directory, as Chmod does the mode; -1 leaves one unchanged. It removes setuid and
// setgid bits, see chown(2).
func (f *FS) Chown(name string, uid, gid int) error {
	f.changing()
	return f.failed("chown", name, f.setAttributes(name, func(file *os.File) error { return file.Chown(uid, gid) },
		func(p *PlannedFile) {
			if uid >= 0 {
				p.UID = uid
			}
			if gid >= 0 {
				p.GID = gid
			}
		}))
}

// LookupOwner returns the numbers of a user and a group in the target's own /etc/passwd and /etc/group, which can differ
// from this machine's. An empty group means the group of the user, an empty user is -1. fs.ErrNotExist when the target
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
	f.changing()
	return f.failed("symlink", name, f.symlink(target, name))
}

// Remove removes a file, a link or an empty directory. An absent one is no error. The removal is durable.
func (f *FS) Remove(name string) error {
	f.changing()
	err := f.remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return f.failed("remove", name, err)
}
