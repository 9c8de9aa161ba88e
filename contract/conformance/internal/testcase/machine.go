package testcase

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/machineadm/machineadm/contract/conformance/internal/trees"
)

// Places returns the paths of root/ and expect/, with every directory above, slash-separated and below the root of a
// machine, which is ".". The paths of a base root are not among them: an image has all paths of this machine.
func (c *Case) Places() ([]string, error) {
	all := map[string]bool{".": true}
	for _, tree := range []string{"root", "expect"} {
		dir := filepath.Join(c.Dir, tree)
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			below, err := filepath.Rel(dir, name)
			all[filepath.ToSlash(below)] = true
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read a case: %w", err)
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// Machine maps places to what this machine has there. A place that could not be read is left out.
type Machine map[string]spot

// spot is what is compared of one place of this machine. Only a directory whose names are compared is opened.
type spot struct {
	there bool
	trees.Entry
	inode string
	names []string // of a directory, sorted
	named bool     // names are compared
}

// Observe reads places of this machine.
func Observe(places []string) Machine {
	out := Machine{}
	for _, place := range places {
		name := filepath.FromSlash(path.Join("/", place))
		info, err := os.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			out[place] = spot{}
		case err == nil:
			out[place] = spotOf(place, name, info)
		}
	}
	return out
}

func spotOf(place, name string, info fs.FileInfo) spot {
	s := spot{there: true, Entry: trees.StatEntry(info), inode: trees.InodeOf(info)}
	switch info.Mode().Type() {
	case fs.ModeDir:
		s.Size = 0 // grows with names that are removed again
		if !unsteady(place, name, info) {
			entries, err := os.ReadDir(name)
			s.named = err == nil
			for _, e := range entries {
				s.names = append(s.names, e.Name())
			}
		}
	case 0, fs.ModeSymlink:
		s.Size = info.Size()
	}
	if ofTheKernel(place) { // the kernel can make another inode and another size for each read
		s.inode, s.Size = "", 0
	}
	return s
}

// timely reports whether another time means a change. The times of a directory also change with a temporary file of another
// program, those of a device with every use, and those of the kernel's files have no meaning.
func (s spot) timely(place string) bool {
	return (s.Mode.IsRegular() || s.Mode.Type() == fs.ModeSymlink) && !ofTheKernel(place)
}

func ofTheKernel(place string) bool { return isBelow(place, "proc") || isBelow(place, "sys") }

// unsteady reports whether other programs add and remove names in this directory all the time, so that a new name is no
// finding: directories that every user may write to (/tmp), that of temporary files, and those of a running system's
// state. In all others, / and /etc among them, a name that is added or removed during an Apply is the plugin's, unless
// packages are installed at the same time.
func unsteady(place, name string, info fs.FileInfo) bool {
	const othersWrite = 0o002
	return info.Mode().Perm()&othersWrite != 0 || name == filepath.Clean(os.TempDir()) ||
		ofTheKernel(place) || isBelow(place, "dev") || isBelow(place, "run")
}

func isBelow(place, dir string) bool { return place == dir || strings.HasPrefix(place, dir+"/") }

// Differences returns a line for each change, by absolute paths.
func (m Machine) Differences(now Machine) []string {
	out := map[string]bool{}
	for _, place := range slices.Sorted(maps.Keys(m)) {
		was, is := m[place], now[place]
		if _, seen := now[place]; !seen {
			continue
		}
		name := path.Join("/", place)
		switch what := was.changed(is, place); {
		case !was.there && is.there:
			out[name+" is new"] = true
		case was.there && !is.there:
			out[name+" is gone"] = true
		case what != "":
			out[name+": "+what] = true
		}
		if !was.named || !is.named {
			continue
		}
		for _, n := range is.names {
			if _, known := slices.BinarySearch(was.names, n); !known {
				out[path.Join(name, n)+" is new"] = true
			}
		}
		for _, n := range was.names {
			if _, still := slices.BinarySearch(is.names, n); !still {
				out[path.Join(name, n)+" is gone"] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// changed describes the first difference of now, if the place exists both times, or returns "".
func (s spot) changed(now spot, place string) string {
	timely := s.timely(place)
	what := s.Differs(now.Entry, trees.Aspects{Modes: true, Owners: true})
	switch {
	case !s.there || !now.there:
		return ""
	case what != "":
		return what
	case s.inode != now.inode:
		return "was replaced"
	case s.Size != now.Size:
		return fmt.Sprintf("has %d bytes instead of %d", now.Size, s.Size)
	case timely && s.Differs(now.Entry, trees.Aspects{Times: true}) != "":
		return "was written or touched: its times are others"
	}
	return ""
}
