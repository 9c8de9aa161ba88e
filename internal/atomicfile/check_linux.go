package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// CheckWrite returns the error that Write meets, as far as it shows beforehand: a read-only file system, an immutable or append-only
// directory or file, or something else under the name of the temporary file. It changes nothing.
func CheckWrite(dir *os.File, name string) error {
	return check(dir, name, temporarySuffix, unix.S_IFREG)
}

// CheckSymlink is CheckWrite for Symlink.
func CheckSymlink(dir *os.File, name string) error {
	return check(dir, name, linkSuffix, unix.S_IFLNK)
}

// CheckRemoval is CheckWrite for the removal of a file or a link.
func CheckRemoval(dir *os.File, name string) error { return check(dir, name, "", 0) }

func check(dir *os.File, name, suffix string, kind uint32) error {
	defer runtime.KeepAlive(dir)
	fd := int(dir.Fd())
	err := checkName(name)
	if err == nil {
		err = refusePinned(fd, name)
	}
	// The permissions of this user are not asked for: a plan can be that of another user than the apply.
	if err == nil && errors.Is(unix.Faccessat(fd, ".", unix.W_OK, unix.AT_EACCESS), unix.EROFS) {
		err = unix.EROFS
	}
	if err == nil && suffix != "" {
		err = refuseForeign(fd, temporaryName(name, suffix), kind)
	}
	return failed("write", dir.Name(), name, "check the place", err)
}

func refuseForeign(dir int, temporary string, kind uint32) error {
	var st unix.Stat_t
	err := unix.Fstatat(dir, temporary, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && (st.Mode&unix.S_IFMT != kind || st.Nlink > 1) {
		return fmt.Errorf("%s is %w", temporary, ErrForeign)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// refusePinned refuses what chattr(1) protects: an append-only directory would take a temporary file and never let go of it, an
// immutable one takes none, and a file with either attribute cannot be replaced or removed.
func refusePinned(dir int, name string) error {
	for _, of := range []struct{ path, what string }{{"", "the directory"}, {name, "the file"}} {
		var st unix.Statx_t
		if err := unix.Statx(dir, of.path, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW, 0, &st); err != nil {
			continue // what is wrong with it, the next step says
		}
		for bit, word := range map[uint64]string{unix.STATX_ATTR_APPEND: "append-only (chattr -a)", unix.STATX_ATTR_IMMUTABLE: "immutable (chattr -i)"} {
			if st.Attributes&bit != 0 {
				return fmt.Errorf("%s is %s: %w", of.what, word, unix.EPERM)
			}
		}
	}
	return nil
}
