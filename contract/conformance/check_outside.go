package conformance

import (
	"context"
	"errors"
)

// nothingOutside looks beside the root, and at the places of this machine that a plugin hits which forgets the root, from
// before the plugin starts. What it finds there stays: it may be anybody's.
func nothingOutside(ctx context.Context, b *bench) (finding, error) {
	places, err := b.trial.c.places()
	if err != nil {
		return finding{}, err
	}
	machineBefore := look(places)
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	before, err := readTree(b.dir, "root", "state")
	if err != nil {
		return finding{}, err
	}
	if _, err := p.describe(ctx, b.planning()); errors.As(err, new(*crash)) {
		return finding{}, err
	}
	if _, err := p.plan(ctx, b.planning()); err != nil && contractError(err) == nil {
		return finding{}, err
	}
	var died *crash
	if run := p.apply(ctx, b.applying(), 0, nil); errors.As(run.err, &died) && !protocolBroken(run.err) {
		return finding{}, run.err
	}
	after, err := readTree(b.dir, "root", "state")
	if err != nil {
		return finding{}, err
	}
	if d := machineBefore.differences(look(places)); len(d) > 0 {
		return failed("on this machine, outside of the root, this changed while the plugin planned and applied:%s\n"+
			"put the root of the request before every path, and mend this machine by hand; if another program did it, run again",
			list(d)).of("P-16"), nil
	}
	if d := differences(before, after, aspects{modes: true, owners: true, times: true}); len(d) > 0 {
		return failed("beside the root, Plan or Apply wrote (home is the working and home directory):%s", list(d)).of("P-16"), nil
	}
	return passed(), nil
}
