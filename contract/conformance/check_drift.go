package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// drift restores the tree of the case after Apply, and plans and applies with the state directory of the first Apply.
func drift(ctx context.Context, f *fixture) (result, error) {
	want, err := f.runner.settled(ctx)
	if err != nil {
		return result{}, err
	}
	if want.reason != "" || len(want.run.changed()) == 0 {
		return notComparable(want, "no change can be made in this image"), nil
	}
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	first, err := p.plan(ctx, f.applying())
	if err != nil || !p.apply(ctx, f.applying(), 0, nil).succeeded() {
		return skipped("Plan or Apply fails, see %s", outcomeName), nil //nolint:nilerr // outcome reports it
	}
	if err := f.restore(); err != nil {
		return result{}, err
	}
	wrong := finding{
		clause: "G-7", expected: "Plan answers with the changes that the machine needs, whatever the state directory says",
		cause: "a marker of what is done, in the state directory or in the process, is read in the place of the machine",
	}
	again, err := p.plan(ctx, f.applying())
	if err != nil {
		wrong.got = fmt.Sprintf("after Apply and with the old files restored, Plan fails: %v", err)
		return failed(wrong), nil
	}
	for _, change := range first.Changes {
		if !slices.ContainsFunc(again.Changes, func(c pluginv1.Change) bool { return c.ID == change.ID }) {
			wrong.got = fmt.Sprintf("after Apply and with the old files restored, Plan lacks the change %q", change.ID)
			return failed(wrong), nil
		}
	}
	if err := p.apply(ctx, f.applying(), 0, nil).failure(); err != nil {
		wrong.got = fmt.Sprintf("after Apply and with the old files restored, Apply fails: %v", err)
		return failed(wrong), nil
	}
	return f.compare(want, "with the old files restored and another Apply", wrong)
}

// restore gives the root the tree of the case again.
func (f *fixture) restore() error {
	below, err := os.ReadDir(f.root)
	if err != nil {
		return err
	}
	for _, entry := range below {
		err = errors.Join(err, os.RemoveAll(filepath.Join(f.root, entry.Name())))
	}
	return errors.Join(err, f.runner.fillRoot(f.root))
}
