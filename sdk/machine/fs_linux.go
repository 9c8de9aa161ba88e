package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"

	"github.com/cyphar/filepath-securejoin/pathrs-lite"
	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/atomicfile"
)

// linksMax is how many links a name may lead through, as in the kernel.
const linksMax = 40

type rootHandle = *os.File

func openRoot(root string) (rootHandle, error) {
	if live(root) {
		root = "/"
	}
	return os.OpenFile(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

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

// lookup opens name, links followed inside the root, as a mere reference (O_PATH): nothing happens to a device.
func (f *FS) lookup(name string) (*os.File, error) {
	file, err := f.openat2(name)
	if err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return file, err
	}
	// Everything else is asked again of the library, which knows kernels without the call, and races.
	file, err = pathrs.OpenatInRoot(f.handle, name)
	if err != nil {
		return nil, withoutPath(err)
	}
	return file, nil
}

// openat2 is what the library does first, without the search for what the file is really called: that costs it a proc
// file system of its own, half a millisecond in each process.
func (f *FS) openat2(name string) (*os.File, error) {
	defer runtime.KeepAlive(f.handle)
	fd, err := unix.Openat2(int(f.handle.Fd()), name, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// reopen opens the file that reference refers to, for reading; O_NONBLOCK is for one that turns out to be less than
// regular. Should /proc be missing, or be something else, the library has means of its own.
func reopen(reference *os.File) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	defer runtime.KeepAlive(reference)
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(int(reference.Fd())), flags, 0)
	if err != nil {
		return pathrs.Reopen(reference, flags)
	}
	file := os.NewFile(uintptr(fd), reference.Name())
	same, err := sameFile(int(reference.Fd()), fd)
	if same && err == nil {
		return file, nil
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return pathrs.Reopen(reference, flags)
}

func withoutPath(err error) error {
	for {
		inner, ok := err.(*fs.PathError) //nolint:errorlint // Peels layers that each repeat a path.
		if !ok {
			return err
		}
		err = inner.Err
	}
}

func (f *FS) open(name string) (_ *os.File, err error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	reference, err := f.lookup(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reference.Close()) }()
	info, err := describe(reference)
	if err != nil {
		return nil, err
	}
	switch info.Mode.Type() {
	case 0:
	case fs.ModeDir:
		return nil, unix.EISDIR
	default:
		return nil, ErrNotRegular
	}
	return reopen(reference) // the very file that was judged
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
	reference, err := f.lookup(name)
	if err != nil {
		return nil, err
	}
	dir, err := reopenDirectory(reference)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return dir.Readdirnames(-1)
}

// reopenDirectory turns a reference into a directory that can be listed and made durable. The reference is closed.
func reopenDirectory(reference *os.File) (*os.File, error) {
	fd, err := unix.Openat(int(reference.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	name := reference.Name()
	if err = errors.Join(err, reference.Close()); err != nil {
		return nil, single(err)
	}
	return os.NewFile(uintptr(fd), name), nil
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
	return readlinkAt(dir, base)
}

func readlinkAt(dir *os.File, base string) (string, error) {
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(dir.Fd()), base, buffer)
	runtime.KeepAlive(dir)
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
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
