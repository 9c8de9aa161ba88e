package changes

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

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/trees"
)

// InOneStep finds what kill misses: the moment between two writes to a file. No file of an image is a parameter of a
// kernel, which would have to be written in place.
func InOneStep(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	if !process.CanWatch {
		return rig.Skipped("writes to a file cannot be watched on this operating system"), nil
	}
	want, err := f.Runner.Undisturbed(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	directories := touchedDirectories(want)
	if want.Reason != "" || len(directories) == 0 {
		return rig.NotComparable(want, "it writes no file"), nil
	}
	// A directory that Apply makes could not be watched before a file is in it.
	if err := makeDirectories(f, want); err != nil {
		return rig.Result{}, err
	}
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	w, err := process.WatchWrites(f.Root, directories)
	if errors.Is(err, process.ErrNoWatch) {
		return rig.Skipped("%v", err), nil
	}
	if err != nil {
		return rig.Result{}, err
	}
	run := p.CallApply(ctx, f.Applying(), 0, nil)
	names, err := w.Written()
	if errors.Is(err, process.ErrNoWatch) {
		return rig.Skipped("%v", err), nil
	}
	if err != nil {
		return rig.Result{}, err
	}
	after, err := trees.ReadTree(f.Root)
	if err != nil {
		return rig.Result{}, err
	}
	if found := slices.DeleteFunc(names, func(name string) bool { return !want.OwnName(name) }); len(found) > 0 {
		return rig.Failed(rig.Finding{
			Clause: "G-11", Expected: "Apply writes a file of another name in the same directory and renames it",
			Got:   "Apply writes in place to /" + strings.Join(found, ", /"),
			Cause: "the file is opened for writing under its own name; write a temporary file and rename it (with the SDK: sdk.File)",
		}), nil
	}
	if !run.Succeeded() || len(trees.Differences(want.After, after, trees.Aspects{Modes: true})) > 0 {
		return rig.Skipped("Apply makes another tree where the directories of its files exist already"), nil
	}
	return rig.Passed(), nil
}

// touchedDirectories returns the directories of the files that a run made, changed, or wrote without a difference.
func touchedDirectories(r rig.Reference) []string {
	out := map[string]bool{}
	for name, e := range r.After {
		before, existed := r.Before[name]
		if e.Mode.IsRegular() && (!existed || before.Differs(e, trees.Aspects{Modes: true, Times: true}) != "") {
			out[path.Dir(name)] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// makeDirectories makes the directories that the undisturbed run has made.
func makeDirectories(f *rig.Fixture, want rig.Reference) error {
	for _, name := range slices.Sorted(maps.Keys(want.After)) {
		e := want.After[name]
		if _, existed := want.Before[name]; existed || !e.Mode.IsDir() {
			continue
		}
		place := filepath.Join(f.Root, filepath.FromSlash(name))
		if err := os.Mkdir(place, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := os.Chmod(place, e.Mode); err != nil {
			return err
		}
	}
	return nil
}
