package conformance

import (
	"context"
	"fmt"
	"slices"
)

func events(ctx context.Context, b *bench) (finding, error) {
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	run := p.apply(ctx, b.applying(), 0, nil)
	if broken := trouble(run.err); broken != "" {
		return failed("the stream of Apply: %s", broken).of(clauseOf(run.err, "P-23")), nil
	}
	if run.finished.Stopped {
		return failed("finished says stopped, but neither Stop nor a limit was given").of("P-24"), nil
	}
	return passed(), nil
}

func limits(ctx context.Context, b *bench) (finding, error) {
	want, err := b.trial.settled(ctx)
	if err != nil {
		return finding{}, err
	}
	total := len(want.run.changed())
	if want.reason != "" || total == 0 {
		return notJudged(want, "no change can be made in this image"), nil
	}
	for limit := 1; limit <= total; limit++ {
		if f, err := b.trial.fresh(func(b *bench) (finding, error) { return b.limited(ctx, want, limit, total) }); f.verdict != Pass || err != nil {
			return f, err
		}
	}
	return passed(), nil
}

// notJudged is the reason why there is no undisturbed run, or the other one.
func notJudged(r reference, other string) finding {
	if r.reason != "" {
		return skipped("%s", r.reason)
	}
	return skipped("%s", other)
}

// fresh judges on a bench of its own.
func (t *trial) fresh(judge func(*bench) (finding, error)) (finding, error) {
	b, err := t.bench()
	if err != nil {
		return finding{}, err
	}
	defer b.close()
	return judge(b)
}

func (b *bench) limited(ctx context.Context, want reference, limit, total int) (finding, error) {
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	run := p.apply(ctx, b.applying(), limit, nil)
	failure := trouble(run.failure())
	switch {
	case failure != "":
		return failed("Apply with limit %d of %d changes fails: %s", limit, total, failure).of("P-24"), nil
	case len(run.changed()) != limit || len(run.started()) != limit:
		return failed("Apply with limit %d of %d changes started %d and made %d",
			limit, total, len(run.started()), len(run.changed())).of("P-24"), nil
	case !slices.Equal(run.deferred(), want.run.deferred()):
		return failed("Apply with limit %d of %d changes defers %q, and without a limit %q",
			limit, total, run.deferred(), want.run.deferred()).of("P-25"), nil
	case limit < total && !run.finished.Stopped:
		return failed("Apply with limit %d of %d changes does not say stopped when it has finished", limit, total).of("P-24"), nil
	}
	f, err := b.again(ctx, want, "after Apply with a limit")
	if f.verdict == Fail {
		f.reason += fmt.Sprintf("\n(the limit was %d of %d changes)", limit, total)
	}
	return f, err
}
