package trust

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is the kernel's limit (path_resolution(7)).
const maxLinks = 40

// walker resolves a path one component at a time by descriptors, so that each step starts at a checked directory.
type walker struct {
	policy Policy
	euid   int
	dir    int    // descriptor of the directory reached
	at     string // its path, without links
	rest   []string
	links  int
}

func open(path string, p Policy) (_ *os.File, err error) {
	w := newWalker(path, p)
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.enterRoot(); err != nil {
		return nil, err
	}
	for {
		for len(w.rest) > 1 || w.rest[0] == ".." {
			if err := w.step(); err != nil {
				return nil, err
			}
		}
		file, err := w.last()
		if file != nil || err != nil {
			return file, err
		}
	}
}

func directory(path string, p Policy) (_ string, err error) {
	w := newWalker(path, p)
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.enterRoot(); err != nil {
		return "", err
	}
	for len(w.rest) > 0 {
		if err := w.step(); err != nil {
			return "", err
		}
	}
	return w.at, w.checkDir(true)
}

func newWalker(path string, p Policy) *walker {
	return &walker{policy: p, euid: os.Geteuid(), dir: -1, rest: steps(path)}
}

func steps(path string) []string {
	kept := slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" || s == "." })
	if len(kept) == 0 {
		return []string{"."}
	}
	return kept
}

func (w *walker) close() error {
	if w.dir < 0 {
		return nil
	}
	err := unix.Close(w.dir)
	w.dir = -1
	return err
}

func (w *walker) enterRoot() error {
	if err := w.close(); err != nil {
		return err
	}
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: "/", Err: err}
	}
	w.dir, w.at = fd, "/"
	return w.checkDir(false)
}

// step enters the next directory, or resolves the link at its place.
func (w *walker) step() error {
	name := w.rest[0]
	fd, stat, err := w.lookup(name)
	if err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFLNK {
		return errors.Join(w.follow(fd, name, stat), unix.Close(fd))
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return errors.Join(&os.PathError{Op: "open", Path: filepath.Join(w.at, name), Err: unix.ENOTDIR}, unix.Close(fd))
	}
	if err := unix.Close(w.dir); err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	w.dir, w.at, w.rest = fd, filepath.Join(w.at, name), w.rest[1:]
	return w.checkDir(false)
}

func (w *walker) lookup(name string) (int, unix.Stat_t, error) {
	var stat unix.Stat_t
	fd, err := unix.Openat(w.dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, stat, &os.PathError{Op: "open", Path: filepath.Join(w.at, name), Err: err}
	}
	if err := unix.Fstat(fd, &stat); err != nil {
		return -1, stat, errors.Join(&os.PathError{Op: "stat", Path: filepath.Join(w.at, name), Err: err}, unix.Close(fd))
	}
	return fd, stat, nil
}

// follow replaces a link by the steps of its target. The link's owner is checked, because in a sticky directory any user
// can create a link.
func (w *walker) follow(fd int, name string, stat unix.Stat_t) error {
	path := filepath.Join(w.at, name)
	if !w.trusted(stat.Uid) {
		return &Error{
			Path: path, Problem: "is a link that belongs to " + user(stat.Uid) + ", which could change it",
			Remedy: "use the path of its target",
		}
	}
	if w.links++; w.links > maxLinks {
		return &os.PathError{Op: "open", Path: path, Err: unix.ELOOP}
	}
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buffer)
	if err != nil {
		return &os.PathError{Op: "readlink", Path: path, Err: err}
	}
	target := string(buffer[:n])
	w.rest = append(steps(target), w.rest[1:]...)
	if filepath.IsAbs(target) {
		return w.enterRoot()
	}
	return nil
}

// last checks and opens the file itself. It returns neither a file nor an error after it resolved a link.
func (w *walker) last() (_ *os.File, err error) {
	name := w.rest[0]
	path := filepath.Join(w.at, name)
	fd, stat, err := w.lookup(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if stat.Mode&unix.S_IFMT == unix.S_IFLNK {
		if w.policy.noLink {
			return nil, &Error{Path: path, Problem: "is a link", Remedy: "use the path of its target"}
		}
		// The directory of the link is checked like the file's, because the link could be replaced there.
		if err := w.checkDir(true); err != nil {
			return nil, err
		}
		return nil, w.follow(fd, name, stat)
	}
	switch kind := stat.Mode & unix.S_IFMT; {
	case kind == unix.S_IFDIR && w.policy.noLink:
		return nil, &os.PathError{Op: "open", Path: path, Err: ErrDirectory}
	case kind != unix.S_IFREG:
		return nil, &Error{Path: path, Problem: "is not a regular file", Remedy: "replace it with a regular file"}
	}
	if err := w.checkDir(true); err != nil {
		return nil, err
	}
	if err := w.checkFile(path, stat); err != nil {
		return nil, err
	}
	// Opened by descriptor, because the name may refer to another file by now.
	file, err := os.Open("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: errors.Unwrap(err)}
	}
	return file, nil
}

// checkDir checks the current directory. The last one may be sticky only if the policy allows it.
func (w *walker) checkDir(last bool) error {
	var stat unix.Stat_t
	if err := unix.Fstat(w.dir, &stat); err != nil {
		return &os.PathError{Op: "stat", Path: w.at, Err: err}
	}
	shared := stat.Mode&unix.S_ISVTX != 0 && stat.Mode&0o022 != 0
	if shared && (!last || w.policy.stickyParent) {
		stat.Mode &^= 0o022
	}
	problem := w.problem(stat)
	if problem == "" {
		return nil
	}
	if shared && w.trusted(stat.Uid) {
		problem = "is a directory in which other users can create files"
	}
	remedy := "use a directory that only " + w.owners() + " can write, below directories that only " + w.owners() + " can write"
	if !shared && w.trusted(stat.Uid) { // as a umask of 002 leaves it
		remedy += "; if no other user needs to write in " + w.at + ": chmod go-w " + Quote(w.at)
	}
	return &Error{Path: w.at, Problem: problem, Remedy: remedy}
}

// checkFile checks the requested file.
func (w *walker) checkFile(path string, stat unix.Stat_t) error {
	problem, remedy := w.problem(stat), "chmod go-w "+Quote(path)
	switch {
	case problem == "" && w.policy.executable && stat.Mode&0o111 == 0:
		problem, remedy = "has no execute permission", "chmod a+x "+Quote(path)
	case problem == "":
		return nil
	case !w.trusted(stat.Uid):
		remedy = "check its content, and use a copy that belongs to " + w.owners()
	}
	return &Error{Path: path, Problem: problem, Remedy: remedy}
}

// problem returns how an untrusted user can change the object, or "".
func (w *walker) problem(stat unix.Stat_t) string {
	if !w.trusted(stat.Uid) {
		return "belongs to " + user(stat.Uid) + ", which could change it"
	}
	return map[uint32]string{
		0o020: "can be written by its group", 0o002: "can be written by everyone", 0o022: "can be written by its group and everyone",
	}[stat.Mode&0o022]
}

func (w *walker) trusted(uid uint32) bool { return uid == 0 || int(uid) == w.euid }

// owners names the trusted users.
func (w *walker) owners() string {
	if w.euid == 0 {
		return "root"
	}
	return "root or " + user(uint32(w.euid)) //nolint:gosec // a user ID fits
}

func user(uid uint32) string { return fmt.Sprintf("user %d", uid) }
