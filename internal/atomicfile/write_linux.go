package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

const labelAttribute = "security.selinux"

// Write puts data at name inside the directory that dir holds open (for reading, not O_PATH), whatever that directory
// is called by now. On any error but one the old file is untouched and nothing is left behind; the one is a directory
// that cannot be made durable after the new file is in place, and its error says so.
//
// An existing file of any kind but a directory is replaced, a link included: checking it is the caller's part.
// Access lists, capabilities and other extended attributes of the old file are not carried over.
func Write(dir *os.File, name string, data []byte, o Options) error {
	defer runtime.KeepAlive(dir)
	w := writer{dir: int(dir.Fd()), dirName: dir.Name(), name: name}
	if err := checkName(name); err != nil {
		return w.failed("check the name", err)
	}
	mode, err := unixMode(o.Mode)
	if err != nil {
		return w.failed("check the mode", err)
	}
	if err := refusePinned(w.dir, name); err != nil {
		return w.failed("create a temporary file", err)
	}
	if err := w.acquire(newBackoff(ownerWait)); err != nil {
		return w.failed("create a temporary file", err)
	}
	if step, err := w.fill(data, mode, o); err != nil {
		return w.failed(step, errors.Join(err, w.abandon()))
	}
	if err := unix.Renameat(w.dir, w.temporary, w.dir, name); err != nil {
		return w.failed("put the new file in place", errors.Join(err, w.abandon()))
	}
	// Closing ends the lock; the data is already durable, so only the directory can still go wrong.
	if err := w.file.Close(); err != nil {
		return w.failed("close the new file, which is in place", withoutPath(err))
	}
	if err := syncDirectory(w.dir); err != nil {
		return w.failed("make the directory durable (the new file is in place, but may not survive a power loss)", err)
	}
	return nil
}

type writer struct {
	dir       int
	dirName   string
	name      string
	temporary string
	file      *os.File
}

func (w *writer) failed(step string, err error) error {
	return failed("write", w.dirName, w.name, step, err)
}

// acquire creates the temporary file and holds its lock.
//
// The lock, not the existence of the file, says that its writer lives: it ends with the process. Only the holder of
// the lock on the inode that currently bears the name may rename or unlink it; a process that gets a lock therefore checks
// again whether the name still means that inode.
func (w *writer) acquire(p *backoff) error {
	w.temporary = temporaryName(w.name, temporarySuffix)
	for {
		done, err := w.tryAcquire()
		if done || err != nil {
			return err
		}
		if !p.wait() {
			return fmt.Errorf("%w (it holds %s)", ErrBusy, w.temporary)
		}
	}
}

func (w *writer) tryAcquire() (bool, error) {
	fd, err := openat(w.dir, w.temporary, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.EEXIST) {
		return false, w.clearStale()
	}
	if err != nil {
		return false, err
	}
	held, err := w.lock(fd)
	if err != nil {
		return false, errors.Join(err, unix.Unlinkat(w.dir, w.temporary, 0), unix.Close(fd))
	}
	if !held {
		return false, unix.Close(fd)
	}
	w.file = os.NewFile(uintptr(fd), w.temporary)
	return true, nil
}

// clearStale removes the temporary file if its writer is dead. What bears the reserved name but cannot be ours is
// left alone, with an error that names it.
func (w *writer) clearStale() error {
	var st unix.Stat_t
	err := unix.Fstatat(w.dir, w.temporary, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	// Looked at before it is opened: opening a device can do things.
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("%s is %w: not a regular file", w.temporary, ErrForeign)
	}
	const flags = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := openat(w.dir, w.temporary, unix.O_RDWR|flags, 0)
	if errors.Is(err, unix.EACCES) {
		// Its writer died after it had made the file read-only.
		fd, err = openat(w.dir, w.temporary, unix.O_RDONLY|flags, 0)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s is in the way: %w", w.temporary, err)
	}
	return errors.Join(w.removeIfDead(fd), unix.Close(fd))
}

func (w *writer) removeIfDead(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("%s is %w: not a regular file", w.temporary, ErrForeign)
	}
	// Root's may bear any owner: a write that hands its file to a user can die after the change of owner.
	if os.Geteuid() != 0 && int(st.Uid) != os.Geteuid() || st.Nlink > 1 {
		return fmt.Errorf("%s is %w: owned by uid %d, %d links", w.temporary, ErrForeign, st.Uid, st.Nlink)
	}
	held, err := w.lock(fd)
	if !held || err != nil {
		return err
	}
	if err := unix.Unlinkat(w.dir, w.temporary, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

// lock reports whether fd is now locked and still what bears the temporary name.
func (w *writer) lock(fd int) (bool, error) {
	err := ignoringEINTR(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", w.temporary, err)
	}
	var mine, named unix.Stat_t
	if err := unix.Fstat(fd, &mine); err != nil {
		return false, err
	}
	err = unix.Fstatat(w.dir, w.temporary, &named, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	return err == nil && mine.Ino == named.Ino && mine.Dev == named.Dev, err
}

// fill makes the temporary file complete and durable. Its contents are for the owner's eyes only until the last step.
func (w *writer) fill(data []byte, mode uint32, o Options) (step string, err error) {
	fd := int(w.file.Fd())
	if _, err := w.file.Write(data); err != nil {
		return "write the new contents", withoutPath(err)
	}
	if o.KeepLabel {
		if err := w.copyLabel(fd); err != nil {
			return "keep the SELinux label", err
		}
	}
	// The mode comes after the owner: changing an owner clears set-user-ID bits.
	if o.Owner != nil {
		if err := unix.Fchown(fd, o.Owner.UID, o.Owner.GID); err != nil {
			return "set the owner", err
		}
	}
	if err := unix.Fchmod(fd, mode); err != nil {
		return "set the mode", err
	}
	if err := w.file.Sync(); err != nil {
		return "make the new contents durable", withoutPath(err)
	}
	return "", nil
}

// maxLabel is the most that any attribute has (XATTR_SIZE_MAX).
const maxLabel = 64 << 10

// copyLabel gives the temporary file the label of the file that it will replace, if that has one.
func (w *writer) copyLabel(temporary int) error {
	old, err := openat(w.dir, w.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	label, err := readLabel("/proc/self/fd/" + strconv.Itoa(old))
	if err = errors.Join(err, unix.Close(old)); err != nil || label == "" {
		return err
	}
	// Setting a label needs a right that setting nothing does not: leave a label that matches.
	current, err := readLabel("/proc/self/fd/" + strconv.Itoa(temporary))
	if err != nil || current == label {
		return err
	}
	return unix.Fsetxattr(temporary, labelAttribute, []byte(label), 0)
}

func readLabel(path string) (string, error) {
	// Labels have less than a hundred bytes, and the kernel makes room for all that it is offered.
	for size := 256; ; size *= 4 {
		buffer := make([]byte, size)
		n, err := unix.Getxattr(path, labelAttribute, buffer)
		switch {
		case errors.Is(err, unix.ENODATA), errors.Is(err, unix.EOPNOTSUPP):
			return "", nil
		case errors.Is(err, unix.ERANGE) && size < maxLabel:
			continue
		case err != nil:
			return "", err
		}
		return string(buffer[:n]), nil
	}
}

// abandon removes the temporary file while the lock still says that it is ours.
func (w *writer) abandon() error {
	err := unix.Unlinkat(w.dir, w.temporary, 0)
	return errors.Join(err, withoutPath(w.file.Close()))
}

func unixMode(mode fs.FileMode) (uint32, error) {
	const allowed = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	if mode&^allowed != 0 {
		return 0, fmt.Errorf("%w: mode %v has more than permission bits", fs.ErrInvalid, mode)
	}
	bits := uint32(mode.Perm())
	for flag, bit := range map[fs.FileMode]uint32{
		fs.ModeSetuid: unix.S_ISUID, fs.ModeSetgid: unix.S_ISGID, fs.ModeSticky: unix.S_ISVTX,
	} {
		if mode&flag != 0 {
			bits |= bit
		}
	}
	return bits, nil
}

func openat(dir int, name string, flags int, mode uint32) (fd int, err error) {
	err = ignoringEINTR(func() error {
		fd, err = unix.Openat(dir, name, flags, mode)
		return err
	})
	return fd, err
}

func syncDirectory(dir int) error {
	return ignoringEINTR(func() error { return unix.Fsync(dir) })
}

func ignoringEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
