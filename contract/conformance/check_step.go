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

// inOneStep sees what kill cannot meet: the moment between two writes to a file. A file of an image is never a parameter
// of a kernel, so that none has to be written in place.
func inOneStep(ctx context.Context, b *bench) (finding, error) {
	if !canWatch {
		return skipped("writes to a file cannot be watched on this operating system"), nil
	}
	want, err := b.trial.undisturbed(ctx)
	if err != nil {
		return finding{}, err
	}
	directories := touchedDirectories(want)
	if want.reason != "" || len(directories) == 0 {
		return notJudged(want, "it writes no file"), nil
	}
	// A directory that comes with the change could not be watched before a file is in it.
	if err := b.makeDirectories(want); err != nil {
		return finding{}, err
	}
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	w, err := watchWrites(b.root, directories)
	if errors.Is(err, errNoWatch) {
		return skipped("%v", err), nil
	}
	if err != nil {
		return finding{}, err
	}
	run := p.apply(ctx, b.applying(), 0, nil)
	names, err := w.written()
	if errors.Is(err, errNoWatch) {
		return skipped("%v", err), nil
	}
	if err != nil {
		return finding{}, err
	}
	after, err := readTree(b.root)
	if err != nil {
		return finding{}, err
	}
	if found := slices.DeleteFunc(names, func(name string) bool { return !want.ownName(name) }); len(found) > 0 {
		return failed("Apply writes in place to /%s\nwrite a file of another name in the same directory and rename it (with the SDK: "+
			"use sdk.File), so that no reader and no crash meets half of one", strings.Join(found, ", /")), nil
	}
	if trouble(run.failure()) != "" || len(differences(want.after, after, aspects{modes: true})) > 0 {
		return skipped("Apply makes another tree where the directories of its files are there already"), nil
	}
	return passed(), nil
}

// ownName says whether a file has this name before or after the run: the others are temporary.
func (r reference) ownName(name string) bool { return r.before[name].file() || r.after[name].file() }

// file says whether there is one, and a regular one.
func (e entry) file() bool { return !e.written.IsZero() && e.mode.IsRegular() }

// touchedDirectories are the directories of the files that a run made, changed, or wrote as they were.
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

// makeDirectories makes those that the undisturbed run has made.
func (b *bench) makeDirectories(want reference) error {
	for _, name := range slices.Sorted(maps.Keys(want.after)) {
		e := want.after[name]
		if _, existed := want.before[name]; existed || !e.mode.IsDir() {
			continue
		}
		place := filepath.Join(b.root, filepath.FromSlash(name))
		if err := os.Mkdir(place, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := os.Chmod(place, e.mode); err != nil {
			return err
		}
	}
	return nil
}
