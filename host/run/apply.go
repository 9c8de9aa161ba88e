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
)

// applyAll applies the documents in order. The first failure ends the run, and the later documents are skipped. The error is
// of the run, or the problems of a document, which are in its result too.
func (r *runner) applyAll(ctx context.Context, all []planned) error {
	if q, due := r.earlierReboot(all); due {
		return r.rebootRequired(q.Document, "an earlier run asked for a reboot before anything else is done")
	}
	r.times.enter(report.StageApply)
	r.all = all
	for i := 0; i < len(r.all); i++ { //nolint:intrange // a document that is resolved inserts others
		p := &r.all[i]
		if p.result.settled {
			r.finished(p.doc)
			continue
		}
		if err := r.checkpoint(ctx); err != nil {
			return err // before the document's turn
		}
		r.emitFor(p.doc, result{by: p.result.by}, Event{Type: EventDocumentStarted})
		d, began := p.doc, time.Now()
		err := r.turn(ctx, p)
		if err == nil && r.results[i].outcome != report.Unchanged && i < lastOpen(r.all) { // otherwise the next report includes it
			err = r.record()
			r.results[i].took = time.Since(began) // to save its outcome is a part of it
		}
		r.finished(d)
		if err != nil {
			return err
		}
	}
	return nil
}

// turn applies a document, settles its result, and ends the run if a reboot must come next.
func (r *runner) turn(ctx context.Context, p *planned) error {
	began := time.Now()
	p.result.began = r.times.at(began)
	res, err := r.applyDocument(ctx, p)
	res.took = time.Since(began)
	if err != nil && !p.mayCause(err) {
		r.results[p.index] = res
		return err
	}
	if err != nil {
		own := p.own(asProblems(err))
		for i := range own {
			own[i].err.Document = cmp.Or(own[i].err.Document, p.label())
		}
		r.results[p.index] = res.fail(own)
		return own
	}
	r.results[p.index] = res
	if err := r.confirmRequests(*p); err != nil {
		return err
	}
	if p.index < lastOpen(r.all) && r.askedBeforeNext(p.doc) {
		r.results[p.index].outcome = report.RebootRequired
		return r.rebootRequired(p.label(), "the machine must reboot before the next document")
	}
	return nil
}

// mayCause reports whether an error of the document's turn is not of documents that were resolved at its turn, while it is in order.
func (p *planned) mayCause(err error) bool {
	own := asProblems(err)
	return len(own) == 0 || own[0].id == "" || own[0].id == p.id
}

// finished emits the end of a document's turn.
func (r *runner) finished(d doc) {
	e := Event{Type: EventDocumentFinished}
	for _, x := range r.results[d.index].problems {
		e.Errors = append(e.Errors, x.err)
	}
	r.emitFor(d, r.results[d.index], e)
}

// applyDocument applies a document, with one time limit over all its tries.
func (r *runner) applyDocument(ctx context.Context, p *planned) (result, error) {
	res := p.result.warn(p.plan.Warnings...)
	end := time.Now().Add(p.applyTimeout())
	var retryUntil time.Time
	var earlier string // the message of the last Retry
	if p.pending != nil && p.pending.Code == pluginv1.CodeRetry {
		earlier = textOf(p.pending)
	}
	pause := r.o.Retry.First
	for {
		var err error
		res, err = r.applyOnce(ctx, p, res, end)
		retry := retryOf(err)
		if retry == nil {
			return res, p.limitAfter(earlier, err)
		}
		earlier = textOf(retry)
		if retryUntil.IsZero() {
			retryUntil = time.Now().Add(r.retryTotal(p.doc))
		}
		wait := max(pause, retry.RetryAfter)
		pause = min(2*pause, r.o.Retry.Most)
		if p.source != nil { // nothing behind it can begin, and many machines may wait for the same source
			pause, wait = r.o.Retry.First, wait+rand.N(wait/5+1)
		}
		switch next := time.Now().Add(wait); {
		case next.After(retryUntil):
			out := p.fromPlugin(res.by, retry)
			out[0].err.Hint = cmp.Or(out[0].err.Hint, fmt.Sprintf("remove the cause, then run again: it was tried for %s", r.retryTotal(p.doc)))
			return res, out
		case next.After(end):
			return res, p.limitAfter(earlier, p.timedOut(res.by))
		}
		r.emitFor(p.doc, res, Event{Type: EventRetry, Message: fmt.Sprintf("%s; trying again in %s", earlier, wait.Round(time.Millisecond))})
		began := time.Now()
		select {
		case <-time.After(wait):
		case <-r.o.Interrupt:
		case <-ctx.Done():
		}
		res = res.wait(earlier, r.times.at(began), time.Since(began))
		if err := r.checkpoint(ctx); err != nil {
			return res, p.limitAfter(earlier, err)
		}
	}
}

// retryTotal returns how long a document is tried again. A source is tried for the whole time of its document, because nothing
// behind it can begin.
func (r *runner) retryTotal(d doc) time.Duration {
	if d.source != nil {
		return d.applyTimeout()
	}
	return r.o.Retry.Total
}

// limitAfter adds the message of the last Retry, if any, to the error of a time limit or of an interruption, which alone names no cause.
func (p *planned) limitAfter(earlier string, err error) error {
	own := asProblems(err)
	if earlier != "" && p.mayCause(err) && len(own) > 0 && (own[0].err.Code == report.CodeDeadline || own[0].err.Code == report.CodeInterrupted) {
		own[0].err.Message += "; the last try: " + earlier
	}
	return err
}

func retryOf(err error) *pluginv1.Error {
	if e, ok := errors.AsType[*pluginv1.Error](err); ok && e.Code == pluginv1.CodeRetry {
		return e
	}
	return nil
}

// applyOnce plans a pending document, and applies a document that has changes or follows one.
func (r *runner) applyOnce(ctx context.Context, p *planned, res result, end time.Time) (result, error) {
	if p.source != nil {
		return r.resolvePending(ctx, p, res, end)
	}
	if p.pending != nil {
		if err := r.planPending(ctx, p, end); err != nil {
			return res, err
		}
		res = r.warn(p.doc, res, p.plan.Warnings...)
	}
	changes := len(p.plan.Changes)
	switch {
	case r.changed:
	case changes == 0:
		outcome := report.Unchanged
		if res.changed() { // by an earlier try
			outcome = report.Changed
		}
		return res.end(outcome, ""), r.choose(*p, false)
	case p.deferred(r.image()) == changes:
		return res.deferLive(p.plan.Changes), r.choose(*p, false)
	}
	if err := r.prepareApply(*p); err != nil {
		return res, err
	}
	return r.call(ctx, *p, res, end)
}

// planPending plans a pending document at its turn, and compares its claims with the claims of the other documents.
func (r *runner) planPending(ctx context.Context, p *planned, end time.Time) error {
	ctx, cancel := r.untilInterrupted(ctx)
	defer cancel()
	ctx, cancelLimit := context.WithDeadlineCause(ctx, end, errTimedOut)
	defer cancelLimit()
	plan, err := r.requestPlan(ctx, p.doc, p.result.by, outlook{})
	var own problems
	switch {
	case err == nil:
		p.plan, p.pending = plan, nil
		return conflicts(r.all)[p.index].orNil()
	case errors.As(err, &own), retryOf(err) != nil:
		return p.withinLimit(ctx, err)
	default:
		return p.fromPlugin(p.result.by, err)
	}
}

// choose saves the provider of a document before it changes anything, so that no later run switches. An image to which a run has
// nothing to do stays as it is: its choices are saved with the first change.
func (r *runner) choose(p planned, changing bool) error {
	if r.deps.State == nil {
		return nil
	}
	r.chosen = append(r.chosen, p)
	if r.image() && !changing {
		return nil
	}
	for _, p := range r.chosen {
		if err := r.deps.State.Choose(p.label(), p.result.by.provider); err != nil {
			return stateError("", err)
		}
	}
	r.chosen = nil
	return nil
}

// prepareApply saves what a later run needs if this process ends during the Apply that follows.
func (r *runner) prepareApply(p planned) error {
	if err := r.choose(p, true); err != nil {
		return err
	}
	if r.deps.Writes != nil {
		if err := r.deps.Writes.Record(p.writes()); err != nil {
			return stateError("record what will be written", err)
		}
	}
	for _, c := range p.plan.Changes {
		if err := r.requestReboot(p.label(), c.Reboot, false); err != nil {
			return err
		}
	}
	if r.deps.Sentinel == nil || r.changed {
		return nil
	}
	return stateError("remove the sentinel of an earlier success", r.deps.Sentinel.Remove())
}
