package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Symlink puts a link to target at name inside dir, replacing in one step what is there, directories excepted.
func Symlink(dir *os.File, target, name string) error {
	defer runtime.KeepAlive(dir)
	fd := int(dir.Fd())
	fail := func(step string, err error) error { return failed("symlink", dir.Name(), name, step, err) }
	if err := checkName(name); err != nil {
		return fail("check the name", err)
	}
	if err := refusePinned(fd, name); err != nil {
		return fail("put the link in place", err)
	}
	temporary := temporaryName(name, linkSuffix)
	for p := newBackoff(ownerWait); ; {
		lost, err := placeLink(fd, target, temporary, name)
		if err == nil {
			break
		}
		if !lost {
			return fail("put the link in place", err)
		}
		if err := removeLink(fd, temporary); err != nil {
			return fail("remove a stale temporary link", err)
		}
		if !p.wait() {
			return fail("put the link in place", errors.Join(ErrBusy, err))
		}
	}
	if err := syncDirectory(fd); err != nil {
		return fail("make the directory durable (the link is in place, but may not survive a power loss)", err)
	}
	return nil
}

// placeLink reports whether it lost to another temporary link, stale or of a live writer. A link is whole from its
// first moment, so the one in the way may be removed without knowing its owner; a process that loses its link makes it again.
func placeLink(dir int, target, temporary, name string) (lost bool, err error) {
	if err := unix.Symlinkat(target, dir, temporary); err != nil {
		return errors.Is(err, unix.EEXIST), err
	}
	err = unix.Renameat(dir, temporary, dir, name)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return err != nil, err
	}
	return false, errors.Join(err, removeLink(dir, temporary))
}

func removeLink(dir int, temporary string) error {
	var st unix.Stat_t
	err := unix.Fstatat(dir, temporary, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return fmt.Errorf("%s is %w: not a link", temporary, ErrForeign)
	}
	if err == nil {
		err = unix.Unlinkat(dir, temporary, 0)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
