package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// run runs one check.
func (r *runner) run(ctx context.Context, check Check) (Result, error) {
	if check.alone {
		r.machine.Lock()
		defer r.machine.Unlock()
	} else {
		r.machine.RLock()
		defer r.machine.RUnlock()
	}
	since, before := time.Now(), r.starts
	got, err := r.attempt(ctx, check)
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s: %s: %w", r.c.Name, check.Name, err)
	}
	r.unsettled = r.unsettled || check.Name == outcomeName && got.status == Fail
	return got.export(r.c, check, since, r.starts-before), nil
}

func (r *runner) attempt(ctx context.Context, check Check) (result, error) {
	switch {
	case check.once && !r.representative:
		return skipped("does not depend on the case: checked with another one"), nil
	case r.startFailure != "":
		return skipped("the plugin does not start, see %s", r.startFailure), nil
	}
	f, err := r.fixture()
	if err != nil {
		return result{}, err
	}
	got, err := check.run(ctx, f)
	f.close()
	if err != nil || got.status == Fail {
		r.endIdle() // a later check has no use for the state that a finding leaves in a process
	}
	var died *crash
	if !errors.As(err, &died) {
		return got, err
	}
	if died.atStart {
		r.startFailure = check.Name
		return failed(finding{
			clause: "H-10", expected: "the plugin starts, and its first line of standard output is the handshake",
			got:   "the plugin does not start: " + died.Error(),
			cause: "an error of its own startup, which is in the last output, or output before the handshake line",
		}), nil
	}
	return failed(finding{
		clause: check.Clause, expected: "the plugin answers every call and ends when it is asked to", got: died.Error(),
		cause: "an exception or a panic that no handler catches, see the last output",
	}), nil
}
