package rig

import (
	"context"
	"fmt"

	"github.com/machineadm/machineadm/contract/conformance/internal/trees"
)

// Compare compares the root with the root of the undisturbed run. The finding completes f.
func (f *Fixture) Compare(want Reference, after string, of Finding) (Result, error) {
	got, err := trees.ReadTree(f.Root)
	if err != nil {
		return Result{}, err
	}
	d := trees.Differences(want.After, got, trees.Aspects{Modes: true, Owners: true})
	if len(d) == 0 {
		return Passed(), nil
	}
	lines := f.FirstDifference(want.After, got, func(name string) ([]byte, error) { return f.Runner.content(want, name) })
	of.Expected = "the tree of an undisturbed run"
	of.Got = fmt.Sprintf("%s, the tree differs from an undisturbed run's:%s%s", after, trees.List(d), lines)
	return Failed(of), nil
}

// Rerun applies once more, by another process, and compares the root with the root of the undisturbed run.
func (f *Fixture) Rerun(ctx context.Context, want Reference, after string) (Result, error) {
	p, err := f.Start(ctx)
	if err != nil {
		return Result{}, err
	}
	if err := p.CallApply(ctx, f.Applying(), 0, nil).Failure(); err != nil {
		return Failed(Finding{
			Clause: "G-10", Expected: "an Apply that was interrupted can be repeated",
			Got:   fmt.Sprintf("%s, the next Apply fails: %v", after, err),
			Cause: "a leftover of the interrupted Apply, such as a temporary file or a lock, that the plugin does not replace",
		}), nil
	}
	return f.Compare(want, after+" and another Apply", Finding{
		Clause: "G-10",
		Cause: "the plugin leaves a temporary file under a name that the next process does not use, or plans from what it " +
			"remembers instead of what it observes",
	})
}
