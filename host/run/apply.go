package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run/claims"
	"github.com/machineadm/machineadm/host/run/values"
)

// applyAll applies the documents in order. The first failure ends the run, and the later documents are skipped. The error is
// of the run, or the problems of a document, which are in its result too.
func (r *runner) applyAll(ctx context.Context, all []values.Planned) error {
	if q, due := r.earlierReboot(all); due {
		return r.rebootRequired(q.Document, "an earlier run asked for a reboot before anything else is done")
	}
	r.times.Enter(report.StageApply)
	r.all = all
	for i := 0; i < len(r.all); i++ { //nolint:intrange // a document that is resolved inserts others
		p := &r.all[i]
		if p.Result.Settled {
			r.finished(p.Doc)
			continue
		}
		if err := r.checkpoint(ctx); err != nil {
			return err // before the document's turn
		}
		r.emitFor(p.Doc, values.Result{By: p.Result.By}, Event{Type: EventDocumentStarted})
		d, began := p.Doc, time.Now()
		err := r.turn(ctx, p)
		if err == nil && r.results[i].Outcome != report.Unchanged && i < values.LastOpen(r.all) { // otherwise the next report includes it
			err = r.record()
			r.results[i].Took = time.Since(began) // to save its outcome is a part of it
		}
		r.finished(d)
		if err != nil {
			return err
		}
	}
	return nil
}

// turn applies a document, settles its result, and ends the run if a reboot must come next.
func (r *runner) turn(ctx context.Context, p *values.Planned) error {
	began := time.Now()
	p.Result.Began = r.times.At(began)
	res, err := r.applyDocument(ctx, p)
	res.Took = time.Since(began)
	if err != nil && !p.MayCause(err) {
		r.results[p.Order] = res
		return err
	}
	if err != nil {
		own := p.Own(values.AsProblems(err))
		for i := range own {
			own[i].Err.Document = cmp.Or(own[i].Err.Document, p.Label())
		}
		r.results[p.Order] = res.Fail(own)
		return own
	}
	r.results[p.Order] = res
	if err := r.confirmRequests(*p); err != nil {
		return err
	}
	if p.Order < values.LastOpen(r.all) && r.askedBeforeNext(p.Doc) {
		r.results[p.Order].Outcome = report.RebootRequired
		return r.rebootRequired(p.Label(), "the machine must reboot before the next document")
	}
	return nil
}

// finished emits the end of a document's turn.
func (r *runner) finished(d values.Doc) {
	e := Event{Type: EventDocumentFinished}
	for _, x := range r.results[d.Order].Problems {
		e.Errors = append(e.Errors, x.Err)
	}
	r.emitFor(d, r.results[d.Order], e)
}

// applyDocument applies a document, with one time limit over all its tries.
func (r *runner) applyDocument(ctx context.Context, p *values.Planned) (values.Result, error) {
	res := p.Result.Warn(p.Plan.Warnings...)
	end := time.Now().Add(p.ApplyTimeout())
	var retryUntil time.Time
	var earlier string // the message of the last Retry
	if p.Pending != nil && p.Pending.Code == pluginv1.CodeRetry {
		earlier = values.TextOf(p.Pending)
	}
	pause := r.o.Retry.First
	for {
		var err error
		res, err = r.applyOnce(ctx, p, res, end)
		retry := retryOf(err)
		if retry == nil {
			return res, p.LimitAfter(earlier, err)
		}
		earlier = values.TextOf(retry)
		if retryUntil.IsZero() {
			retryUntil = time.Now().Add(r.retryTotal(p.Doc))
		}
		wait := max(pause, retry.RetryAfter)
		pause = min(2*pause, r.o.Retry.Most)
		if p.Source != nil { // nothing behind it can begin, and many machines may wait for the same source
			pause, wait = r.o.Retry.First, wait+rand.N(wait/5+1)
		}
		switch next := time.Now().Add(wait); {
		case next.After(retryUntil):
			out := p.FromPlugin(res.By, retry)
			out[0].Err.Hint = cmp.Or(out[0].Err.Hint, fmt.Sprintf("remove the cause, then run again: it was tried for %s", r.retryTotal(p.Doc)))
			return res, out
		case next.After(end):
			return res, p.LimitAfter(earlier, p.TimedOut(res.By))
		}
		r.emitFor(p.Doc, res, Event{Type: EventRetry, Message: fmt.Sprintf("%s; trying again in %s", earlier, wait.Round(time.Millisecond))})
		began := time.Now()
		select {
		case <-time.After(wait):
		case <-r.o.Interrupt:
		case <-ctx.Done():
		}
		res = res.Wait(earlier, r.times.At(began), time.Since(began))
		if err := r.checkpoint(ctx); err != nil {
			return res, p.LimitAfter(earlier, err)
		}
	}
}

// retryTotal returns how long a document is tried again. A source is tried for the whole time of its document, because nothing
// behind it can begin.
func (r *runner) retryTotal(d values.Doc) time.Duration {
	if d.Source != nil {
		return d.ApplyTimeout()
	}
	return r.o.Retry.Total
}

func retryOf(err error) *pluginv1.Error {
	if e, ok := errors.AsType[*pluginv1.Error](err); ok && e.Code == pluginv1.CodeRetry {
		return e
	}
	return nil
}

// applyOnce plans a pending document, and applies a document that has changes or follows one.
func (r *runner) applyOnce(ctx context.Context, p *values.Planned, res values.Result, end time.Time) (values.Result, error) {
	if p.Source != nil {
		return r.resolvePending(ctx, p, res, end)
	}
	if p.Pending != nil {
		if err := r.planPending(ctx, p, end); err != nil {
			return res, err
		}
		res = r.warn(p.Doc, res, p.Plan.Warnings...)
	}
	changes := len(p.Plan.Changes)
	switch {
	case r.changed:
	case changes == 0:
		outcome := report.Unchanged
		if res.Changed() { // by an earlier try
			outcome = report.Changed
		}
		return res.End(outcome, ""), r.choose(*p, false)
	case p.Deferred(r.image()) == changes:
		return res.DeferLive(p.Plan.Changes), r.choose(*p, false)
	}
	if err := r.prepareApply(*p); err != nil {
		return res, err
	}
	return r.call(ctx, *p, res, end)
}

// planPending plans a pending document at its turn, and compares its claims with the claims of the other documents.
func (r *runner) planPending(ctx context.Context, p *values.Planned, end time.Time) error {
	ctx, cancel := r.untilInterrupted(ctx)
	defer cancel()
	ctx, cancelLimit := context.WithDeadlineCause(ctx, end, errTimedOut)
	defer cancelLimit()
	plan, err := r.requestPlan(ctx, p.Doc, p.Result.By, outlook{})
	var own values.Problems
	switch {
	case err == nil:
		p.Plan, p.Pending = plan, nil
		return claims.Conflicts(r.all)[p.Order].OrNil()
	case errors.As(err, &own), retryOf(err) != nil:
		return withinLimit(ctx, p, err)
	default:
		return p.FromPlugin(p.Result.By, err)
	}
}

// choose saves the provider of a document before it changes anything, so that no later run switches. An image to which a run has
// nothing to do stays as it is: its choices are saved with the first change.
func (r *runner) choose(p values.Planned, changing bool) error {
	if r.deps.State == nil {
		return nil
	}
	r.chosen = append(r.chosen, p)
	if r.image() && !changing {
		return nil
	}
	for _, p := range r.chosen {
		if err := r.deps.State.Choose(p.Label(), p.Result.By.Provider); err != nil {
			return values.StateError("", err)
		}
	}
	r.chosen = nil
	return nil
}

// prepareApply saves what a later run needs if this process ends during the Apply that follows.
func (r *runner) prepareApply(p values.Planned) error {
	if err := r.choose(p, true); err != nil {
		return err
	}
	if r.deps.Writes != nil {
		if err := r.deps.Writes.Record(p.Writes()); err != nil {
			return values.StateError("record what will be written", err)
		}
	}
	for _, c := range p.Plan.Changes {
		if err := r.requestReboot(p.Label(), c.Reboot, false); err != nil {
			return err
		}
	}
	if r.deps.Sentinel == nil || r.changed {
		return nil
	}
	return values.StateError("remove the sentinel of an earlier success", r.deps.Sentinel.Remove())
}
