package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/rooted"
)

// place finds, and where needed makes, the directory in which a new file called base shall replace what is there.
// With follow, links in the last segment are followed: the one that is replaced is the file at their end.
func (f *FS) place(name string, follow bool) (_ *os.File, base string, err error) {
	if err := checkName(name); err != nil {
		return nil, "", err
	}
	name = path.Clean(name)
	for range linksMax {
		// What a link says is not cleaned: its ".." means the parent of where a link before it leads.
		parent, base := path.Split(strings.TrimRight(name, "/"))
		if base == "" || base == "." || base == ".." {
			return nil, "", unix.EISDIR
		}
		dir, err := f.makeSafeDirectory(parent)
		if err != nil {
			return nil, "", err
		}
		info, err := lstatAt(dir, base)
		switch {
		case errors.Is(err, unix.ENOENT), err == nil && info.Mode.IsRegular():
			return dir, base, nil
		case err != nil:
		case info.Mode.Type() == fs.ModeSymlink && !follow:
			return dir, base, nil
		case info.Mode.Type() == fs.ModeSymlink:
			var said string
			if said, err = rooted.Readlink(dir, base); err == nil {
				name = said
				if !strings.HasPrefix(said, "/") {
					name = parent + said
				}
			}
		case info.Mode.IsDir():
			err = unix.EISDIR
		default:
			err = ErrNotRegular
		}
		if err = errors.Join(err, dir.Close()); err != nil {
			return nil, "", single(err)
		}
	}
	return nil, "", unix.ELOOP
}

// single undoes errors.Join for the one error that it nearly always holds.
func single(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) == 1 {
		return joined.Unwrap()[0]
	}
	return err
}

func (f *FS) mkdirAll(name string, mode fs.FileMode) error {
	if err := checkName(name); err != nil {
		return err
	}
	if mode&^fs.ModePerm != 0 {
		return fmt.Errorf("%w: mode %v has more than permission bits", fs.ErrInvalid, mode)
	}
	dir, err := f.make(name, mode)
	if err != nil {
		return err
	}
	return dir.Close()
}

func (f *FS) makeSafeDirectory(name string) (*os.File, error) {
	dir, err := f.safeDirectory(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if dir, err = f.make(name, parentMode); err != nil {
		return nil, err
	}
	if err := dir.Close(); err != nil {
		return nil, err
	}
	return f.safeDirectory(name)
}

// make walks down from the root and makes what is missing, only inside directories that nobody else can write.
func (f *FS) make(name string, mode fs.FileMode) (*os.File, error) {
	walked := "/"
	dir, err := f.lookup(walked)
	if err != nil {
		return nil, err
	}
	for segment := range strings.SplitSeq(name, "/") {
		if segment == "" || segment == "." {
			continue
		}
		above := walked
		walked = strings.TrimRight(walked, "/") + "/" + segment
		next, err := f.lookup(walked)
		if errors.Is(err, fs.ErrNotExist) && segment != ".." {
			next, err = f.makeOne(above, segment, mode)
		}
		if err = errors.Join(err, dir.Close()); err != nil {
			return nil, single(err)
		}
		dir = next
	}
	info, err := describe(dir)
	if err == nil && !info.Mode.IsDir() {
		err = unix.ENOTDIR
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

func (f *FS) makeOne(above, segment string, mode fs.FileMode) (_ *os.File, err error) {
	dir, err := f.safeDirectory(above)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	parent := int(dir.Fd())
	err = unix.Mkdirat(parent, segment, uint32(mode.Perm()))
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	if err == nil {
		// By name, which is safe where only we can write, and works where the umask left nothing to open it with.
		if err := unix.Fchmodat(parent, segment, uint32(mode.Perm()), 0); err != nil {
			return nil, fmt.Errorf("set the mode of the new directory %s: %w", segment, err)
		}
		if err := dir.Sync(); err != nil {
			return nil, withoutPath(err)
		}
	}
	fd, err := unix.Openat(parent, segment, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOTDIR) {
		return nil, fmt.Errorf("%s is in the way: a file, or a link that leads nowhere: %w", segment, err)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), segment), nil
}
