package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/atomicfile"
	"github.com/machineadm/machineadm/internal/rooted"
)

// linksMax is how many links a name may lead through, as in the kernel.
const linksMax = 40

// checkName refuses ".." because it would mean one thing to a reader of the path and another one to the kernel when
// a link stands before it. In the text of a link it means what the kernel says.
func checkName(name string) error {
	if !strings.HasPrefix(name, "/") || strings.ContainsRune(name, 0) {
		return fmt.Errorf("%w: not an absolute path of the target", fs.ErrInvalid)
	}
	for segment := range strings.SplitSeq(name, "/") {
		if segment == ".." {
			return fmt.Errorf("%w: the path has a .. segment", fs.ErrInvalid)
		}
	}
	return nil
}

// lookup opens name, links followed inside the root, as a reference (O_PATH).
func (f *FS) lookup(name string) (*os.File, error) { return f.handle.Lookup(name) }

func withoutPath(err error) error {
	for {
		inner, ok := err.(*fs.PathError) //nolint:errorlint // Peels layers that each repeat a path.
		if !ok {
			return err
		}
		err = inner.Err
	}
}

func (f *FS) open(name string) (*os.File, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	return f.handle.OpenFile(name)
}

func (f *FS) stat(name string) (_ Info, err error) {
	if err := checkName(name); err != nil {
		return Info{}, err
	}
	reference, err := f.lookup(name)
	if err != nil {
		return Info{}, err
	}
	defer func() { err = errors.Join(err, reference.Close()) }()
	return describe(reference)
}

func describe(file *os.File) (Info, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(file.Fd()), &st)
	runtime.KeepAlive(file)
	return infoOf(&st), err
}

func infoOf(st *unix.Stat_t) Info {
	mode := fs.FileMode(st.Mode & 0o777)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	default:
		mode |= fs.ModeIrregular
	}
	if st.Mode&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if st.Mode&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if st.Mode&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return Info{Mode: mode, UID: int(st.Uid), GID: int(st.Gid), Size: st.Size}
}

// parent opens the directory that holds name and returns the last segment, "" for the root itself.
func (f *FS) parent(name string) (*os.File, string, error) {
	if err := checkName(name); err != nil {
		return nil, "", err
	}
	dir, base := path.Split(path.Clean(name))
	handle, err := f.lookup(dir)
	return handle, base, err
}

func (f *FS) lstat(name string) (_ Info, err error) {
	dir, base, err := f.parent(name)
	if err != nil {
		return Info{}, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if base == "" {
		return describe(dir)
	}
	return lstatAt(dir, base)
}

func lstatAt(dir *os.File, base string) (Info, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), base, &st, unix.AT_SYMLINK_NOFOLLOW)
	runtime.KeepAlive(dir)
	return infoOf(&st), err
}

func (f *FS) readDir(name string) (_ []string, err error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	dir, err := f.handle.OpenDir(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return dir.Readdirnames(-1)
}

func (f *FS) readlink(name string) (_ string, err error) {
	dir, base, err := f.parent(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if base == "" {
		return "", unix.EINVAL
	}
	return rooted.Readlink(dir, base)
}

func (f *FS) write(name string, data []byte, o atomicfile.Options) (err error) {
	dir, base, err := f.place(name, true)
	if err != nil {
		return err
	}
	defer func() { err = single(errors.Join(err, dir.Close())) }()
	return atomicfile.Write(dir, base, data, o)
}

func (f *FS) symlink(target, name string) (err error) {
	dir, base, err := f.place(name, false)
	if err != nil {
		return err
	}
	defer func() { err = single(errors.Join(err, dir.Close())) }()
	return atomicfile.Symlink(dir, target, base)
}

// amend changes attributes of a file or directory, in a directory where it cannot be exchanged meanwhile.
func (f *FS) amend(name string, change func(*os.File) error) (err error) {
	if err := checkName(name); err != nil {
		return err
	}
	parent, base := path.Split(path.Clean(name))
	if base == "" {
		return fmt.Errorf("%w: the root itself", fs.ErrInvalid)
	}
	dir, err := f.safeDirectory(parent)
	if err != nil {
		return err
	}
	defer func() { err = single(errors.Join(err, dir.Close())) }()
	info, err := lstatAt(dir, base)
	if err != nil {
		return err
	}
	if !info.Mode.IsRegular() && !info.Mode.IsDir() {
		return ErrNotRegular
	}
	fd, err := unix.Openat(int(dir.Fd()), base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), base)
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := change(file); err != nil {
		return withoutPath(err)
	}
	return withoutPath(file.Sync())
}

func (f *FS) remove(name string) (err error) {
	if err := checkName(name); err != nil {
		return err
	}
	parent, base := path.Split(path.Clean(name))
	if base == "" {
		return fmt.Errorf("%w: the root itself", fs.ErrInvalid)
	}
	dir, err := f.safeDirectory(parent)
	if errors.Is(err, unix.ENOTDIR) {
		return fs.ErrNotExist
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	err = unix.Unlinkat(int(dir.Fd()), base, 0)
	if errors.Is(err, unix.EISDIR) {
		err = unix.Unlinkat(int(dir.Fd()), base, unix.AT_REMOVEDIR)
	}
	if err != nil {
		return err
	}
	return withoutPath(dir.Sync())
}
