package changes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// Drift restores the tree of the case after Apply, and plans and applies with the state directory of the first Apply.
func Drift(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	want, err := f.Runner.Settled(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	if want.Reason != "" || len(want.Run.Changed()) == 0 {
		return rig.NotComparable(want, "no change can be made in this image"), nil
	}
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	first, err := p.CallPlan(ctx, f.Applying())
	if err != nil || !p.CallApply(ctx, f.Applying(), 0, nil).Succeeded() {
		return rig.Skipped("Plan or Apply fails, see %s", rig.OutcomeName), nil //nolint:nilerr // outcome reports it
	}
	if err := restore(f); err != nil {
		return rig.Result{}, err
	}
	wrong := rig.Finding{
		Clause: "G-7", Expected: "Plan answers with the changes that the machine needs, whatever the state directory says",
		Cause: "a marker of what is done, in the state directory or in the process, is read in the place of the machine",
	}
	again, err := p.CallPlan(ctx, f.Applying())
	if err != nil {
		wrong.Got = fmt.Sprintf("after Apply and with the old files restored, Plan fails: %v", err)
		return rig.Failed(wrong), nil
	}
	for _, change := range first.Changes {
		if !slices.ContainsFunc(again.Changes, func(c pluginv1.Change) bool { return c.ID == change.ID }) {
			wrong.Got = fmt.Sprintf("after Apply and with the old files restored, Plan lacks the change %q", change.ID)
			return rig.Failed(wrong), nil
		}
	}
	if err := p.CallApply(ctx, f.Applying(), 0, nil).Failure(); err != nil {
		wrong.Got = fmt.Sprintf("after Apply and with the old files restored, Apply fails: %v", err)
		return rig.Failed(wrong), nil
	}
	return f.Compare(want, "with the old files restored and another Apply", wrong)
}

// restore gives the root the tree of the case again.
func restore(f *rig.Fixture) error {
	below, err := os.ReadDir(f.Root)
	if err != nil {
		return err
	}
	for _, entry := range below {
		err = errors.Join(err, os.RemoveAll(filepath.Join(f.Root, entry.Name())))
	}
	return errors.Join(err, f.Runner.FillRoot(f.Root))
}
