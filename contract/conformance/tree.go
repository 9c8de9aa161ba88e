package conformance

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is what is compared of a file.
type entry struct {
	mode     fs.FileMode // with the type
	uid, gid int         // -1 where there are none
	size     int64
	content  [sha256.Size]byte // of a regular file
	link     string            // of a link
	written  time.Time         // modification time
	touched  time.Time         // change time where there is one
}

// tree maps slash-separated paths below a directory, "." for the directory itself, to entries.
type tree map[string]entry

// readTree reads a directory with all below it, except the paths named and what is removed meanwhile.
func readTree(dir string, except ...string) (tree, error) {
	out := tree{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name != dir {
			return nil
		}
		if err != nil {
			return err
		}
		below, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		if slices.Contains(except, below) {
			return skip(d)
		}
		e, err := readEntry(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		out[below] = e
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read a tree: %w", err)
	}
	return out, nil
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func readEntry(name string) (entry, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return entry{}, err
	}
	e := statEntry(info)
	switch info.Mode().Type() {
	case 0:
		e.size = info.Size()
		e.content, err = digest(name)
	case fs.ModeSymlink:
		e.link, err = os.Readlink(name)
	}
	return e, err
}

// statEntry returns the entry of a file without its content.
func statEntry(info fs.FileInfo) entry {
	e := entry{mode: info.Mode(), uid: -1, gid: -1, written: info.ModTime(), touched: info.ModTime()}
	e.system(info)
	return e
}

func digest(name string) (sum [sha256.Size]byte, err error) {
	file, err := os.Open(name)
	if err != nil {
		return sum, err
	}
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	hash.Sum(sum[:0])
	return sum, errors.Join(err, file.Close())
}

// aspects select what is compared of two trees beside types, contents and links.
type aspects struct{ modes, owners, times bool }

// shownDifferences limits the list in a finding.
const shownDifferences = 8

// differences returns a line for each path that differs in got.
func differences(want, got tree, a aspects) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(union(want, got))) {
		w, wanted := want[name]
		g, there := got[name]
		switch {
		case !there:
			out = append(out, name+" is missing")
		case !wanted:
			out = append(out, name+" should not be there")
		default:
			if what := w.differs(g, a); what != "" {
				out = append(out, name+": "+what)
			}
		}
	}
	return out
}

// list returns differences as a finding shows them.
func list(differences []string) string {
	if more := len(differences) - shownDifferences; more > 0 {
		differences = append(differences[:shownDifferences:shownDifferences], fmt.Sprintf("and %d more", more))
	}
	return "\n  " + strings.Join(differences, "\n  ")
}

func union(a, b tree) tree {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// differs describes the first difference of got, or returns "".
func (e entry) differs(got entry, a aspects) string {
	const bits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	switch {
	case e.mode.Type() != got.mode.Type():
		return fmt.Sprintf("is %s instead of %s", kindOf(got.mode), kindOf(e.mode))
	case e.content != got.content:
		return fmt.Sprintf("has other content (%d bytes instead of %d)", got.size, e.size)
	case e.link != got.link:
		return fmt.Sprintf("leads to %q instead of %q", got.link, e.link)
	case a.modes && e.mode.Type() != fs.ModeSymlink && e.mode&bits != got.mode&bits:
		return fmt.Sprintf("has the mode %v instead of %v", got.mode&bits, e.mode&bits)
	case a.owners && (e.uid != got.uid || e.gid != got.gid):
		return fmt.Sprintf("belongs to %d:%d instead of %d:%d", got.uid, got.gid, e.uid, e.gid)
	case a.times && (!e.written.Equal(got.written) || !e.touched.Equal(got.touched)):
		return "was touched: its times are others"
	}
	return ""
}

func kindOf(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "a file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a link"
	default:
		return "a special file"
	}
}

// withFiles returns the tree without the directories that have no file below them.
func (t tree) withFiles() tree {
	files := maps.Clone(t)
	maps.DeleteFunc(files, func(_ string, e entry) bool { return e.mode.IsDir() })
	return files.withParents(t)
}

// withParents adds the directories above each entry, from all.
func (t tree) withParents(all tree) tree {
	out := maps.Clone(t)
	for name := range t {
		for above := path.Dir(name); above != "."; above = path.Dir(above) {
			if d, ok := all[above]; ok {
				out[above] = d
			}
		}
	}
	return out
}

// copyTree copies what is below from, which may not exist, over what is below to, which does. With normal, modes are
// what the package's comment says, else those of from. fill replaces in every file.
func copyTree(from, to string, normal bool, fill func([]byte) []byte) error {
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err := filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := info.Mode()
		if normal {
			mode = normalMode(mode)
		}
		return copyOne(name, filepath.Join(to, below), mode, fill)
	})
	if err != nil {
		return fmt.Errorf("copy a tree: %w", err)
	}
	return nil
}

func normalMode(mode fs.FileMode) fs.FileMode {
	if mode.IsDir() || mode.IsRegular() && mode&0o111 != 0 {
		return mode.Type() | 0o755
	}
	return mode.Type() | 0o644
}

func copyOne(from, to string, mode fs.FileMode, fill func([]byte) []byte) error {
	switch mode.Type() {
	case fs.ModeDir:
		if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return os.Chmod(to, mode) // not left to the umask
	case fs.ModeSymlink:
		said, err := os.Readlink(from)
		if err != nil {
			return err
		}
		if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return os.Symlink(said, to)
	case 0:
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return write(to, fill(data), mode)
	default:
		return nil // no case is about devices, pipes and sockets of a base root
	}
}

// write makes or replaces a file with this mode, whatever the umask is.
func write(name string, data []byte, mode fs.FileMode) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		return err
	}
	return os.Chmod(name, mode)
}

// asIs is the fill of a plain copy.
func asIs(data []byte) []byte { return bytes.Clone(data) }
