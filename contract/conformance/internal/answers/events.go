package answers

import (
	"context"
	"fmt"
	"slices"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
)

// Events is the check events.
func Events(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	run := p.CallApply(ctx, f.Applying(), 0, nil)
	if err := run.Err; err != nil {
		return rig.Failed(rig.Finding{
			Clause: process.ClauseOf(err, "P-23"), Expected: "started and changed for each change, one finished at the end, and the status OK",
			Got:   fmt.Sprintf("the stream of Apply: %v", err),
			Cause: "Apply returns an error instead of sending it in finished, ends early, or sends an event twice or never",
		}), nil
	}
	if run.Finished.Stopped {
		return rig.Failed(rig.Finding{
			Clause: "P-24", Expected: "finished without stopped, because neither Stop nor a limit ended Apply",
			Got:   "finished has stopped, but neither Stop nor a limit was given",
			Cause: "stopped is set whenever a change is left, or a limit of 0 counts as a limit",
		}), nil
	}
	return rig.Passed(), nil
}

// Limits is the check limit.
func Limits(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	want, err := f.Runner.Settled(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	total := len(want.Run.Changed())
	if want.Reason != "" || total == 0 {
		return rig.NotComparable(want, "no change can be made in this image"), nil
	}
	for limit := 1; limit <= total; limit++ {
		got, err := f.Runner.Another(func(f *rig.Fixture) (rig.Result, error) { return limited(ctx, f, want, limit, total) })
		if got.Status != rig.Pass || err != nil {
			return got, err
		}
	}
	return rig.Passed(), nil
}

func limited(ctx context.Context, f *rig.Fixture, want rig.Reference, limit, total int) (rig.Result, error) {
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	run := p.CallApply(ctx, f.Applying(), limit, nil)
	made := fmt.Sprintf("Apply with limit %d of %d changes", limit, total)
	wrong := rig.Finding{
		Clause: "P-24", Expected: fmt.Sprintf("Apply ends without an error after %d changes, stopped if others are left", limit),
		Cause: "limit of the request is not read, or counts something else than the changes that are made",
	}
	switch failure := run.Failure(); {
	case failure != nil:
		wrong.Got = fmt.Sprintf("%s fails: %v", made, failure)
		return rig.Failed(wrong), nil
	case len(run.Changed()) != limit || len(run.Started()) != limit:
		wrong.Got = fmt.Sprintf("%s started %d and made %d", made, len(run.Started()), len(run.Changed()))
		return rig.Failed(wrong), nil
	case !slices.Equal(run.Deferred(), want.Run.Deferred()):
		return rig.Failed(rig.Finding{
			Clause: "P-25", Expected: "finished lists every deferred change, also when stopped is true",
			Got:   fmt.Sprintf("%s defers %q, and without a limit %q", made, run.Deferred(), want.Run.Deferred()),
			Cause: "deferred lists only the changes up to the one at which Apply stopped",
		}), nil
	case limit < total && !run.Finished.Stopped:
		wrong.Got = made + " ends without stopped in finished"
		return rig.Failed(wrong), nil
	}
	return f.Rerun(ctx, want, "after "+made)
}
