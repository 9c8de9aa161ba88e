// Package trees reads, copies and compares trees of files.
package trees

import (
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
)

// Tree maps slash-separated paths below a directory, "." for the directory itself, to entries.
type Tree map[string]Entry

// ReadTree reads a directory with all below it, except the paths named and what is removed meanwhile.
func ReadTree(dir string, except ...string) (Tree, error) {
	out := Tree{}
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
		e, err := ReadEntry(name)
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

// ReadEntry returns what a tree holds of the file of this name.
func ReadEntry(name string) (Entry, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return Entry{}, err
	}
	e := StatEntry(info)
	switch info.Mode().Type() {
	case 0:
		e.Size = info.Size()
		e.Content, err = digest(name)
	case fs.ModeSymlink:
		e.Link, err = os.Readlink(name)
	}
	return e, err
}

// StatEntry returns the entry of a file without its content.
func StatEntry(info fs.FileInfo) Entry {
	e := Entry{Mode: info.Mode(), UID: -1, GID: -1, written: info.ModTime(), touched: info.ModTime()}
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

// shownDifferences limits the list in a finding.
const shownDifferences = 8

// Differences returns a line for each path that differs in got.
func Differences(want, got Tree, a Aspects) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(Union(want, got))) {
		w, wanted := want[name]
		g, there := got[name]
		switch {
		case !there:
			out = append(out, name+" is missing")
		case !wanted:
			out = append(out, name+" should not be there")
		default:
			if what := w.Differs(g, a); what != "" {
				out = append(out, name+": "+what)
			}
		}
	}
	return out
}

// List returns differences as a finding shows them.
func List(differences []string) string {
	if more := len(differences) - shownDifferences; more > 0 {
		differences = append(differences[:shownDifferences:shownDifferences], fmt.Sprintf("and %d more", more))
	}
	return "\n  " + strings.Join(differences, "\n  ")
}

// Union returns both trees as one, b where both have a file.
func Union(a, b Tree) Tree {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// WithFiles returns the tree without the directories that have no file below them.
func (t Tree) WithFiles() Tree {
	files := maps.Clone(t)
	maps.DeleteFunc(files, func(_ string, e Entry) bool { return e.Mode.IsDir() })
	return files.WithParents(t)
}

// WithParents adds the directories above each entry, from all.
func (t Tree) WithParents(all Tree) Tree {
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
