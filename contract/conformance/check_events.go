package conformance

import (
	"context"
	"fmt"
	"slices"
)

func events(ctx context.Context, f *fixture) (result, error) {
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	run := p.apply(ctx, f.applying(), 0, nil)
	if err := run.err; err != nil {
		return failed(finding{
			clause: clauseOf(err, "P-23"), expected: "started and changed for each change, one finished at the end, and the status OK",
			got:   fmt.Sprintf("the stream of Apply: %v", err),
			cause: "Apply returns an error instead of sending it in finished, ends early, or sends an event twice or never",
		}), nil
	}
	if run.finished.Stopped {
		return failed(finding{
			clause: "P-24", expected: "finished without stopped, because neither Stop nor a limit ended Apply",
			got:   "finished has stopped, but neither Stop nor a limit was given",
			cause: "stopped is set whenever a change is left, or a limit of 0 counts as a limit",
		}), nil
	}
	return passed(), nil
}

func limits(ctx context.Context, f *fixture) (result, error) {
	want, err := f.runner.settled(ctx)
	if err != nil {
		return result{}, err
	}
	total := len(want.run.changed())
	if want.reason != "" || total == 0 {
		return notComparable(want, "no change can be made in this image"), nil
	}
	for limit := 1; limit <= total; limit++ {
		got, err := f.runner.another(func(f *fixture) (result, error) { return f.limited(ctx, want, limit, total) })
		if got.status != Pass || err != nil {
			return got, err
		}
	}
	return passed(), nil
}

func (f *fixture) limited(ctx context.Context, want reference, limit, total int) (result, error) {
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	run := p.apply(ctx, f.applying(), limit, nil)
	made := fmt.Sprintf("Apply with limit %d of %d changes", limit, total)
	wrong := finding{
		clause: "P-24", expected: fmt.Sprintf("Apply ends without an error after %d changes, stopped if others are left", limit),
		cause: "limit of the request is not read, or counts something else than the changes that are made",
	}
	switch failure := run.failure(); {
	case failure != nil:
		wrong.got = fmt.Sprintf("%s fails: %v", made, failure)
		return failed(wrong), nil
	case len(run.changed()) != limit || len(run.started()) != limit:
		wrong.got = fmt.Sprintf("%s started %d and made %d", made, len(run.started()), len(run.changed()))
		return failed(wrong), nil
	case !slices.Equal(run.deferred(), want.run.deferred()):
		return failed(finding{
			clause: "P-25", expected: "finished lists every deferred change, also when stopped is true",
			got:   fmt.Sprintf("%s defers %q, and without a limit %q", made, run.deferred(), want.run.deferred()),
			cause: "deferred lists only the changes up to the one at which Apply stopped",
		}), nil
	case limit < total && !run.finished.Stopped:
		wrong.got = made + " ends without stopped in finished"
		return failed(wrong), nil
	}
	return f.rerun(ctx, want, "after "+made)
}
