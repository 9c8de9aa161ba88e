package conformance

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// inOneStep finds what kill misses: the moment between two writes to a file. No file of an image is a parameter of a
// kernel, which would have to be written in place.
func inOneStep(ctx context.Context, f *fixture) (result, error) {
	if !canWatch {
		return skipped("writes to a file cannot be watched on this operating system"), nil
	}
	want, err := f.runner.undisturbed(ctx)
	if err != nil {
		return result{}, err
	}
	directories := touchedDirectories(want)
	if want.reason != "" || len(directories) == 0 {
		return notComparable(want, "it writes no file"), nil
	}
	// A directory that Apply makes could not be watched before a file is in it.
	if err := f.makeDirectories(want); err != nil {
		return result{}, err
	}
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	w, err := watchWrites(f.root, directories)
	if errors.Is(err, errNoWatch) {
		return skipped("%v", err), nil
	}
	if err != nil {
		return result{}, err
	}
	run := p.apply(ctx, f.applying(), 0, nil)
	names, err := w.written()
	if errors.Is(err, errNoWatch) {
		return skipped("%v", err), nil
	}
	if err != nil {
		return result{}, err
	}
	after, err := readTree(f.root)
	if err != nil {
		return result{}, err
	}
	if found := slices.DeleteFunc(names, func(name string) bool { return !want.ownName(name) }); len(found) > 0 {
		return failed(finding{
			clause: "G-11", expected: "Apply writes a file of another name in the same directory and renames it",
			got:   "Apply writes in place to /" + strings.Join(found, ", /"),
			cause: "the file is opened for writing under its own name; write a temporary file and rename it (with the SDK: sdk.File)",
		}), nil
	}
	if !run.succeeded() || len(differences(want.after, after, aspects{modes: true})) > 0 {
		return skipped("Apply makes another tree where the directories of its files exist already"), nil
	}
	return passed(), nil
}

// touchedDirectories returns the directories of the files that a run made, changed, or wrote without a difference.
func touchedDirectories(r reference) []string {
	out := map[string]bool{}
	for name, e := range r.after {
		before, existed := r.before[name]
		if e.mode.IsRegular() && (!existed || before.differs(e, aspects{modes: true, times: true}) != "") {
			out[path.Dir(name)] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// makeDirectories makes the directories that the undisturbed run has made.
func (f *fixture) makeDirectories(want reference) error {
	for _, name := range slices.Sorted(maps.Keys(want.after)) {
		e := want.after[name]
		if _, existed := want.before[name]; existed || !e.mode.IsDir() {
			continue
		}
		place := filepath.Join(f.root, filepath.FromSlash(name))
		if err := os.Mkdir(place, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := os.Chmod(place, e.mode); err != nil {
			return err
		}
	}
	return nil
}
