package trust

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is the kernel's own limit (path_resolution(7)).
const maxLinks = 40

// walker goes down a path step by step, by descriptors, so that what was judged is what the next step starts from.
type walker struct {
	policy Policy
	euid   int
	dir    int    // descriptor of the directory reached
	at     string // its path, without links
	rest   []string
	links  int
}

func open(path string, p Policy) (_ *os.File, err error) {
	w := &walker{policy: p, euid: os.Geteuid(), dir: -1}
	defer func() { err = errors.Join(err, w.leave()) }()
	w.rest = steps(path)
	if err := w.enterRoot(); err != nil {
		return nil, err
	}
	for len(w.rest) > 1 || w.rest[0] == ".." {
		if err := w.step(); err != nil {
			return nil, err
		}
	}
	for {
		file, err := w.last()
		if file != nil || err != nil {
			return file, err
		}
		for len(w.rest) > 1 || w.rest[0] == ".." {
			if err := w.step(); err != nil {
				return nil, err
			}
		}
	}
}

func steps(path string) []string {
	out := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	kept := out[:0]
	for _, s := range out {
		if s != "." {
			kept = append(kept, s)
		}
	}
	if len(kept) == 0 {
		return []string{"."}
	}
	return kept
}

func (w *walker) leave() error {
	if w.dir < 0 {
		return nil
	}
	err := unix.Close(w.dir)
	w.dir = -1
	return err
}

func (w *walker) enterRoot() error {
	if err := w.leave(); err != nil {
		return err
	}
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: "/", Err: err}
	}
	w.dir, w.at = fd, "/"
	return w.judgeDir(false)
}

// step goes into the next directory, or follows the link that stands there.
func (w *walker) step() error {
	name := w.rest[0]
	fd, stat, err := w.look(name)
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
	return w.judgeDir(false)
}

func (w *walker) look(name string) (int, unix.Stat_t, error) {
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

// follow puts the steps of a link's target in the place of the link. In a directory that others can write (a sticky
// one) only the link's owner vouches for it.
func (w *walker) follow(fd int, name string, stat unix.Stat_t) error {
	path := filepath.Join(w.at, name)
	if !w.trusted(stat.Uid) {
		return &Error{
			Path: path, Problem: "is a link that belongs to " + user(stat.Uid) + ", who could change it",
			Remedy: "chown -h " + w.owner() + " " + quote(path),
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

// last judges and opens the file itself. Neither a file nor an error means that a link was followed.
func (w *walker) last() (_ *os.File, err error) {
	name := w.rest[0]
	path := filepath.Join(w.at, name)
	fd, stat, err := w.look(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if stat.Mode&unix.S_IFMT == unix.S_IFLNK {
		if w.policy.noLink {
			return nil, &Error{Path: path, Problem: "is a link", Remedy: "give the file itself: " + quote(path) + " leads elsewhere"}
		}
		// The link is found by its name, as the file would be: its directory is judged like the file's.
		if err := w.judgeDir(true); err != nil {
			return nil, err
		}
		return nil, w.follow(fd, name, stat)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, &Error{Path: path, Problem: "is not a regular file", Remedy: "put a regular file in its place"}
	}
	if err := w.judgeDir(true); err != nil {
		return nil, err
	}
	if err := w.judge(path, stat); err != nil {
		return nil, err
	}
	// Through the descriptor: the name could lead elsewhere by now.
	file, err := os.Open("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: errors.Unwrap(err)}
	}
	return file, nil
}

// judgeDir judges the directory reached. The file's own directory may be sticky only where the policy says so.
func (w *walker) judgeDir(own bool) error {
	var stat unix.Stat_t
	if err := unix.Fstat(w.dir, &stat); err != nil {
		return &os.PathError{Op: "stat", Path: w.at, Err: err}
	}
	if shared := stat.Mode&unix.S_ISVTX != 0 && stat.Mode&0o022 != 0; shared {
		if own && !w.policy.stickyParent && w.trusted(stat.Uid) {
			// Not chmod: that would break /tmp for everyone.
			return &Error{
				Path: w.at, Problem: "is a directory in which others can put files",
				Remedy: "move " + quote(filepath.Join(w.at, w.rest[0])) + " to a directory that nobody else can write",
			}
		}
		stat.Mode &^= 0o022
	}
	return w.judge(w.at, stat)
}

func (w *walker) judge(path string, stat unix.Stat_t) error {
	if !w.trusted(stat.Uid) {
		return &Error{
			Path: path, Problem: "belongs to " + user(stat.Uid) + ", who could change it",
			Remedy: "chown " + w.owner() + " " + quote(path),
		}
	}
	if writers := stat.Mode & 0o022; writers != 0 {
		who := map[uint32]string{0o020: "its group", 0o002: "everyone", 0o022: "its group and everyone"}[writers]
		return &Error{Path: path, Problem: "can be written by " + who, Remedy: "chmod go-w " + quote(path)}
	}
	return nil
}

func (w *walker) trusted(uid uint32) bool { return uid == 0 || int(uid) == w.euid }

// owner is who should own what is refused, as chown takes it.
func (w *walker) owner() string {
	if w.euid != 0 {
		return strconv.Itoa(w.euid)
	}
	return "root:root"
}

func user(uid uint32) string { return fmt.Sprintf("user %d", uid) }

// quote makes a path one word of a shell's command line.
func quote(path string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+=:,@%", r)
	}
	if strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
