package machine

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/rooted"
)

// safeDirectory opens a directory for changes in it, or refuses it with ErrUnsafe.
func (f *FS) safeDirectory(name string) (*os.File, error) {
	// Every directory on the path: a user who can write in one can replace the link or directory that is next.
	for i, c := range name {
		if c != '/' || i == 0 {
			continue
		}
		above, err := f.lookup(name[:i])
		if err != nil {
			return nil, err
		}
		if err := closed(above, checkDirectory(above, false)); err != nil {
			return nil, err
		}
	}
	reference, err := f.lookup(name)
	if err != nil {
		return nil, err
	}
	dir, err := rooted.ReopenDir(reference)
	if err != nil {
		return nil, err
	}
	err = checkDirectory(dir, true)
	if err == nil {
		err = f.checkAncestors(dir)
	}
	if err != nil {
		return nil, closed(dir, err)
	}
	return dir, nil
}

// checkAncestors checks every directory between dir and the root. It follows descriptors, not names, and so also finds a
// directory that was moved out of the root since it was opened.
func (f *FS) checkAncestors(dir *os.File) (err error) {
	if top, err := sameFile(dir, f.handle.File()); top || err != nil {
		return err
	}
	above, err := openAt(dir, "..", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer func() { err = closed(above, err) }()
	switch top, err := sameFile(dir, above); {
	case err != nil:
		return err
	case top:
		return fmt.Errorf("%w: the directory was moved out of the root", ErrUnsafe)
	}
	if err := checkDirectory(above, false); err != nil {
		return err
	}
	return f.checkAncestors(above)
}

func sameFile(a, b *os.File) (bool, error) { return rooted.SameFile(int(a.Fd()), int(b.Fd())) }

// checkDirectory refuses a directory that others can write. A sticky one keeps them from renaming the files of others, so
// it may be an ancestor; in the directory itself they could still create the file first.
func checkDirectory(dir *os.File, itself bool) error {
	info, err := describe(dir)
	if err != nil {
		return err
	}
	if info.UID != 0 && info.UID != os.Geteuid() {
		return fmt.Errorf("%w: %s belongs to user %d, who could change files in it; find out why, and make root its owner",
			ErrUnsafe, nameOf(dir), info.UID)
	}
	if info.Mode&0o022 == 0 || info.Mode&fs.ModeSticky != 0 && !itself {
		return nil
	}
	return fmt.Errorf("%w: %s is writable by others (mode %04o); find out why, and remove that permission",
		ErrUnsafe, nameOf(dir), info.Mode.Perm())
}

// nameOf is for messages only: the directory may be renamed at any time.
func nameOf(dir *os.File) string {
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(dir.Fd())))
	if err != nil {
		return "a directory of the path"
	}
	return strconv.Quote(name)
}
