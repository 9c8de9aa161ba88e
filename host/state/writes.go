package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/internal/atomicfile"
	"github.com/machineadm/machineadm/internal/rooted"
)

const (
	writesVersion = stateVersion
	maxWrites     = 16 << 20
	linksMax      = 40 // links in a path, as in the kernel
)

// Writes records the paths that a run is about to write, so that a later run of any stream finds the temporary files that a
// killed run left beside them. They can contain secrets. The record of the live machine is in the state directory; that of an
// image is its file ImageWrites, which the first boot and later bakes read.
//
// Only a process that holds the lock uses it.
type Writes struct {
	root     string   // of the image; "" means the live machine
	stateDir string   // searched completely
	records  []string // below root; Record writes the first
	own      []string // files that the host writes, on the live machine
	paths    map[string]bool
}

// NewWrites returns the record of the live machine (root "") or of an image. own are the files that the host itself
// writes outside of stateDir, in the file system of this process.
func NewWrites(root, stateDir string, own ...string) *Writes {
	w := &Writes{root: root, stateDir: stateDir, own: own, records: []string{ImageWrites}, paths: map[string]bool{}}
	if root == "" {
		w.records = []string{filepath.Join(stateDir, WritesFile), ImageWrites}
	}
	return w
}

// Record adds paths of the target durably, before the change that writes them.
func (w *Writes) Record(paths []string) error {
	all := maps.Clone(w.paths)
	for _, p := range paths {
		all[p] = true
	}
	if len(all) == len(w.paths) {
		return nil
	}
	data, err := json.Marshal(writes{Version: writesVersion, Paths: slices.Sorted(maps.Keys(all))})
	if err == nil {
		err = writeBelow(w.root, w.records[0], append(data, '\n'), 0o600)
	}
	if err != nil {
		return stateError(fmt.Errorf("record the written paths: %w", err))
	}
	w.paths = all
	return nil
}

// Clear cleans up and removes the record at the end of a run, when all plugins have ended.
func (w *Writes) Clear() error {
	if len(w.paths) == 0 {
		return nil
	}
	return w.CleanUp()
}

// CleanUp removes, at the start of a run, the leftovers of interrupted writes beside every recorded path, and then the record.
// A record remains if the cleanup of one of its paths fails.
func (w *Writes) CleanUp() error {
	errs := []error{
		cleanBelow(w.stateDir),
		within("", func(live *rooted.Root) error { return cleanBeside(live, w.own) }),
		within(w.root, func(root *rooted.Root) error {
			errs := []error{cleanBeside(root, []string{ImageChoices})}
			for _, name := range w.records {
				errs = append(errs, cleanRecord(root, name))
			}
			return errors.Join(errs...)
		}),
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove the leftovers of interrupted writes: %w", err)
	}
	w.paths = map[string]bool{}
	return nil
}

// within calls do with an opened root; "" means the live machine.
func within(dir string, do func(*rooted.Root) error) (err error) {
	root, err := rooted.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return do(root)
}

// writes is the format of the record.
type writes struct {
	Version int      `json:"version"`
	Paths   []string `json:"paths"`
}

func parseWrites(data []byte) ([]string, error) {
	var w writes
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, err
	}
	if w.Version != writesVersion {
		return nil, fmt.Errorf("it has version %d, and this release reads %d", w.Version, writesVersion)
	}
	return w.Paths, nil
}

// writeBelow writes a file below root. Its errors contain the path with the root.
func writeBelow(root, name string, data []byte, mode fs.FileMode) error {
	return within(root, func(opened *rooted.Root) (err error) {
		dir, err := opened.OpenDir(filepath.Dir(name))
		if errors.Is(err, fs.ErrNotExist) {
			dir, err = makeDir(opened, filepath.Dir(name))
		}
		if err != nil {
			return located(root, filepath.Dir(name), "mkdir", err)
		}
		defer func() { err = errors.Join(err, dir.Close()) }()
		err = atomicfile.Write(dir, filepath.Base(name), data, atomicfile.Options{Mode: mode, KeepLabel: true})
		return located(root, name, "write", err)
	})
}

// located replaces the path of an error by name below root.
func located(root, name, op string, err error) error {
	if err == nil {
		return nil
	}
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	return &fs.PathError{Op: op, Path: filepath.Join(root, name), Err: err}
}

func cleanRecord(root *rooted.Root, name string) error {
	if err := cleanBeside(root, []string{name}); err != nil {
		return err
	}
	data, err := root.ReadFile(name, maxWrites)
	if absent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if err := later(name, data, "and with it the temporary files of a killed run"); err != nil {
		return err
	}
	paths, err := parseWrites(data)
	if err != nil {
		return fmt.Errorf("%s is damaged: %w; remove it", name, err)
	}
	if err := cleanBeside(root, paths); err != nil {
		return err
	}
	dir, err := root.OpenDir(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(removeAt(dir, filepath.Base(name)), dir.Close())
}

// cleanBeside removes the leftovers of writes to these paths, and to the targets of links.
func cleanBeside(root *rooted.Root, paths []string) error {
	var errs []error
	for _, name := range paths {
		for range linksMax {
			next, err := cleanOne(root, name)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
			}
			if name = next; name == "" {
				break
			}
		}
	}
	return errors.Join(errs...)
}

// cleanOne removes the leftovers of writes to name, and returns the target if name is a link.
func cleanOne(root *rooted.Root, name string) (string, error) {
	parent, base := filepath.Split(name)
	if base == "" || strings.ContainsRune(name, 0) {
		return "", nil
	}
	dir, err := root.OpenDir(parent)
	if absent(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	err = atomicfile.CleanUp(dir, base)
	to, linkErr := rooted.Readlink(dir, base)
	if linkErr != nil {
		to = ""
	} else if !path.IsAbs(to) {
		to = parent + to
	}
	return to, errors.Join(err, dir.Close())
}

// cleanBelow removes every leftover below a directory that only this user can enter. It skips absent entries.
func cleanBelow(name string) error {
	return filepath.WalkDir(name, func(at string, e fs.DirEntry, err error) (_ error) {
		if err != nil || e.IsDir() || !atomicfile.Leftover(e.Name()) {
			if absent(err) {
				err = nil
			}
			return err
		}
		dir, err := os.Open(filepath.Dir(at))
		if err != nil {
			return err
		}
		return errors.Join(atomicfile.Remove(dir, e.Name()), dir.Close())
	})
}
