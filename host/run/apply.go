package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// applyAll applies each document at its turn. A document that fails ends the run; those behind it are skipped. The error
// is an *ending, or problems of the document, which stand in its result.
func (r *runner) applyAll(ctx context.Context, all []planned) error {
	if q, due := r.foreignReboot(all); due {
		return r.rebootProblem(q.Document, "an earlier run asked for a reboot before anything else is done")
	}
	for i, p := range all {
		if p.result.settled {
			r.finished(i)
			continue
		}
		if err := r.checkpoint(ctx); err != nil {
			return err // this document was not begun
		}
		started := time.Now()
		r.started(p)
		res, err := r.applyDocument(ctx, i, all)
		res.took = time.Since(started)
		r.progress.results[i] = res
		if err != nil {
			own := asProblems(err).of(p.doc)
			r.progress.results[i], err = res.fail(own), own
		}
		if err == nil {
			err = r.settleRequests(all[i])
		}
		if err == nil && i < lastOpen(all) && r.asked(p.label(), pluginv1.RebootBeforeNext) {
			r.progress.results[i].outcome = report.RebootRequired
			err = r.rebootProblem(p.label(), "the machine must reboot before the next document")
		}
		r.finished(i)
		if err != nil {
			return err
		}
		if res.outcome == report.Unchanged || i >= lastOpen(all) {
			continue // the next report, before a change or at the end, says it
		}
		if err := r.record(); err != nil {
			return err
		}
	}
	return nil
}

// lastOpen is the place of the last document that has a turn.
func lastOpen(all []planned) int {
	for i, p := range slices.Backward(all) {
		if !p.result.settled {
			return i
		}
	}
	return -1
}

// applyDocument gives a document its turn, with one time limit over all its tries.
func (r *runner) applyDocument(ctx context.Context, place int, all []planned) (result, error) {
	p := all[place]
	res := p.result.with(p)
	limit := ApplyTimeout
	if p.Timeout > 0 {
		limit = p.Timeout
	}
	end := time.Now().Add(limit)
	var retryUntil time.Time
	pause := r.o.Retry.First
	for {
		var err error
		res, err = r.applyOnce(ctx, place, all, res, end)
		retry := retryOf(err)
		if retry == nil {
			return res, err
		}
		if retryUntil.IsZero() {
			retryUntil = time.Now().Add(r.o.Retry.Total)
		}
		wait := max(pause, retry.RetryAfter)
		pause = min(2*pause, r.o.Retry.Most)
		switch next := time.Now().Add(wait); {
		case next.After(retryUntil):
			out := p.fromPlugin(p.by, retry)
			out[0].err.Hint = firstOf(out[0].err.Hint, fmt.Sprintf("remove the cause, then run again: it was tried for %s", r.o.Retry.Total))
			return res, out
		case next.After(end):
			return res, p.tooLong(p.by, limit)
		}
		d := fold(p.doc, res)
		r.emit(Event{Type: EventRetry, Document: &d, Message: fmt.Sprintf("%s; trying again in %s",
			firstOf(retry.Message, violationsOf(retry)), wait)})
		select {
		case <-time.After(wait):
		case <-r.o.Interrupt:
		case <-ctx.Done():
		}
		if err := r.checkpoint(ctx); err != nil {
			return res, err
		}
	}
}

func retryOf(err error) *pluginv1.Error {
	var e *pluginv1.Error
	if errors.As(err, &e) && e.Code == pluginv1.CodeRetry {
		return e
	}
	return nil
}

// applyOnce plans a pending document, and applies a document that has changes or stands behind one.
func (r *runner) applyOnce(ctx context.Context, place int, all []planned, res result, end time.Time) (result, error) {
	p := &all[place]
	if p.pending != nil {
		if err := r.planAtTurn(ctx, place, all, end); err != nil {
			return res, err
		}
		res = res.with(*p)
	}
	image := r.o.Root != ""
	switch {
	case len(p.plan.Changes) == 0 && !r.changed:
		outcome := report.Unchanged
		if res.changed() { // an earlier try got that far
			outcome = report.Changed
		}
		return res.end(outcome, ""), r.choose(*p)
	case len(p.plan.Changes) > 0 && live(p.plan.Changes, image) == len(p.plan.Changes) && !r.changed:
		return r.deferLive(res, p.plan.Changes), r.choose(*p)
	}
	if err := r.prepareApply(*p); err != nil {
		return res, err
	}
	return r.call(ctx, *p, res, end)
}

// planAtTurn plans a pending document again, and compares what it owns with the other documents.
func (r *runner) planAtTurn(ctx context.Context, place int, all []planned, end time.Time) error {
	p := &all[place]
	ctx, cancel := r.untilInterrupted(ctx)
	defer cancel()
	ctx, cancelLimit := context.WithDeadline(ctx, end)
	defer cancelLimit()
	plan, err := r.ask(ctx, p.doc, p.by)
	var own problems
	var over *ending
	switch {
	case err == nil:
		p.plan, p.pending = plan, nil
		return conflicts(all)[place].orNil()
	case errors.As(err, &own), errors.As(err, &over), retryOf(err) != nil:
		return err // it says all that there is to say
	default:
		return p.fromPlugin(p.by, err)
	}
}

// deferLive leaves changes to first boot.
func (r *runner) deferLive(res result, changes []pluginv1.Change) result {
	for _, c := range changes {
		res = res.add(report.Change{ID: c.ID, Summary: c.Summary, Outcome: report.Deferred})
	}
	return res.end(report.Deferred, report.ReasonLive)
}

// choose keeps which provider serves a document, before anything is changed with it, so that no later run switches.
func (r *runner) choose(p planned) error {
	if r.with.State == nil {
		return nil
	}
	if err := r.with.State.Choose(p.label(), p.by.provider); err != nil {
		return &ending{stateProblem(err)}
	}
	return nil
}

// prepareApply makes durable what must be known if this process ends during the Apply that follows.
func (r *runner) prepareApply(p planned) error {
	if err := r.choose(p); err != nil {
		return err
	}
	if r.with.Writes != nil {
		if err := r.with.Writes.Record(p.writes()); err != nil {
			return &ending{stateProblem(fmt.Errorf("record what will be written: %w", err))}
		}
	}
	for _, c := range p.plan.Changes {
		if err := r.requestReboot(p.label(), c.Reboot, false); err != nil {
			return err
		}
	}
	if r.with.Sentinel != nil && !r.changed {
		if err := r.with.Sentinel.Remove(); err != nil {
			return &ending{stateProblem(fmt.Errorf("remove the sentinel of an earlier success: %w", err))}
		}
	}
	return nil
}

// tooLong is the end of a document that took longer than its limit.
func (d doc) tooLong(by *candidate, limit time.Duration) problems {
	return problems{{detail: by.stderr(), err: d.at("metadata.timeout", report.Error{
		Code: report.CodeDeadline, Message: fmt.Sprintf("applying it took longer than its %s", limit),
		Hint: "raise metadata.timeout if it needs longer; running again is safe",
	})}}
}
