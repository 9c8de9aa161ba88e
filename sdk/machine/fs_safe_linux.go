package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/rooted"
)

// safeDirectory opens a directory for writing into it, or refuses it with ErrUnsafe.
func (f *FS) safeDirectory(name string) (*os.File, error) {
	// Every directory that the name passes: whoever can write one can exchange the link or directory that is next.
	for i, c := range name {
		if c != '/' || i == 0 {
			continue
		}
		dir, err := f.lookup(name[:i])
		if err != nil {
			return nil, err
		}
		if err := errors.Join(judge(int(dir.Fd()), false), dir.Close()); err != nil {
			return nil, single(err)
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
	err = judge(int(dir.Fd()), true)
	if err == nil {
		err = f.judgeAncestors(dir)
	}
	if err != nil {
		return nil, single(errors.Join(err, dir.Close()))
	}
	return dir, nil
}

// judgeAncestors walks up from where the name really led. It does not trust names, so it also finds a directory that
// was moved out of the root since it was opened.
func (f *FS) judgeAncestors(dir *os.File) error {
	defer runtime.KeepAlive(dir)
	here, err := unix.FcntlInt(dir.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for {
		if same, err := rooted.SameFile(here, int(f.handle.File().Fd())); same || err != nil {
			return errors.Join(err, unix.Close(here))
		}
		above, err := unix.Openat(here, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return single(errors.Join(err, unix.Close(here)))
		}
		top, err := rooted.SameFile(here, above)
		if top {
			err = fmt.Errorf("%w: the directory was moved out of the root", ErrUnsafe)
		}
		if err == nil {
			err = judge(above, false)
		}
		if err = errors.Join(err, unix.Close(here)); err != nil {
			return single(errors.Join(single(err), unix.Close(above)))
		}
		here = above
	}
}

// judge refuses a directory that others can write. A sticky one keeps them from renaming what is not theirs, so it
// may be an ancestor; in the directory itself they could still take the name before us.
func judge(dir int, itself bool) error {
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return err
	}
	info := infoOf(&st)
	if info.UID != 0 && info.UID != os.Geteuid() {
		return fmt.Errorf("%w: %s belongs to user %d, who could change what is written there; find out why, and let root own it",
			ErrUnsafe, nameOf(dir), info.UID)
	}
	if info.Mode&0o022 == 0 || info.Mode&fs.ModeSticky != 0 && !itself {
		return nil
	}
	return fmt.Errorf("%w: %s can be written by others (mode %04o); find out why, and take that right from them",
		ErrUnsafe, nameOf(dir), info.Mode.Perm())
}

// nameOf is for messages only: by the time it is read the directory may be called something else.
func nameOf(dir int) string {
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(dir))
	if err != nil {
		return "a directory on the way"
	}
	return strconv.Quote(name)
}
