package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// applyAll applies each document at its turn. A failed document stops the run; those behind it are skipped.
func (r *run) applyAll(ctx context.Context) error {
	for _, it := range r.items {
		if it.out.Outcome != "" {
			r.emit(Event{Type: EventDocumentFinished, Document: it.out})
			continue
		}
		if err := r.checkpoint(ctx); err != nil {
			return err // this document was not begun
		}
		started := time.Now()
		r.emit(Event{Type: EventDocumentStarted, Document: it.out})
		err := r.applyWithRetry(ctx, it)
		it.out.DurationMs = time.Since(started).Milliseconds()
		if err != nil {
			err = r.fail(it, err)
		} else if it.asked == pluginv1.RebootBeforeNext && len(r.active()) > 0 {
			err = r.rebootRequired(it)
		}
		r.emit(Event{Type: EventDocumentFinished, Document: it.out})
		if err != nil {
			return err
		}
		if it.out.Outcome == report.Unchanged || len(r.active()) == 0 && r.wantedReboot() == nil {
			continue // the report before the next change, or the last one, which comes next, tells it
		}
		if err := r.record(); err != nil {
			return err
		}
	}
	return nil
}

// applyWithRetry repeats a document that answers Retry, with a growing pause.
func (r *run) applyWithRetry(ctx context.Context, it *item) error {
	deadline := time.Now().Add(r.o.Retry.Total)
	pause := r.o.Retry.First
	for {
		err := r.applyOnce(ctx, it)
		e := retryOf(err)
		if e == nil {
			return err
		}
		wait := max(pause, e.RetryAfter)
		pause = min(2*pause, r.o.Retry.Most)
		if time.Now().Add(wait).After(deadline) {
			f := it.failure(r.o.File, e)
			f.err.Hint = firstOf(e.Hint, fmt.Sprintf("run it again when the cause is gone: it was tried for %s", r.o.Retry.Total))
			return f
		}
		r.emit(Event{Type: EventRetry, Document: it.out, Message: fmt.Sprintf("%s; trying again in %s", e.Message, wait)})
		select {
		case <-time.After(wait):
		case <-r.o.Interrupt:
		case <-ctx.Done():
		}
		if err := r.checkpoint(ctx); err != nil {
			return err
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

// applyOnce plans a document again unless nothing can have changed since, and applies what is missing.
func (r *run) applyOnce(ctx context.Context, it *item) error {
	if !it.fresh || r.changed {
		planning, cancel := r.untilInterrupted(ctx)
		defer cancel()
		plan, err := r.plan(planning, it)
		if retry := retryOf(err); retry != nil {
			return retry
		}
		if err != nil {
			return r.judge(it, err)
		}
		it.plan = plan
		it.noteWarnings(plan.Warnings)
	}
	it.fresh = false
	switch live := r.live(it.plan.Changes); {
	case len(it.plan.Changes) == 0:
		if it.out.Outcome = report.Unchanged; len(it.out.Changes) > 0 { // an earlier try got that far
			it.out.Outcome = report.Changed
		}
		return r.keepChoice(it)
	case live == len(it.plan.Changes):
		r.leave(it, it.plan.Changes)
		return nil
	}
	if err := r.keepChoice(it); err != nil {
		return err
	}
	if r.with.Sentinel != nil && !r.changed {
		if err := r.with.Sentinel.Remove(); err != nil {
			return stateFailure(fmt.Errorf("remove the sentinel of an earlier success: %w", err))
		}
	}
	r.changed = true
	return r.carryOut(ctx, it)
}

// live counts the changes that an image root must leave for first boot.
func (r *run) live(changes []pluginv1.Change) int {
	n := 0
	for _, c := range changes {
		if r.o.Root != "" && c.NeedsLive {
			n++
		}
	}
	return n
}

func (r *run) leave(it *item, changes []pluginv1.Change) {
	for _, c := range changes {
		it.out.Changes = append(it.out.Changes, report.Change{ID: c.ID, Summary: c.Summary, Outcome: report.Deferred})
	}
	it.out.Outcome, it.out.Reason = report.Deferred, report.ReasonLive
}

// keepChoice remembers which provider was chosen for a kind, before anything is changed with it.
func (r *run) keepChoice(it *item) error {
	if r.with.State == nil || it.doc.Provider != "" || r.o.Root != "" {
		return nil
	}
	if err := r.with.State.Bind(it.doc.Kind, it.out.Provider); err != nil {
		return stateFailure(err)
	}
	return nil
}

// carryOut runs Apply, with the deadline of the document and the orderly end that an interruption asks for.
func (r *run) carryOut(ctx context.Context, it *item) error {
	request, err := r.request(it)
	if err != nil {
		return err
	}
	limit := ApplyTimeout
	if it.doc.Timeout > 0 {
		limit = it.doc.Timeout
	}
	call, watch := r.watch(ctx, it, limit)
	listen := &listener{run: r, item: it, begun: map[string]time.Time{}, unkept: watch.unkept}
	finished, err := it.plugin.Apply(call, request, 0, listen.take)
	cause := watch.end()
	listen.abandon(err == nil && finished.Error != nil)
	switch {
	case r.recordErr != nil:
		return stateFailure(r.recordErr)
	case cause != nil && (err != nil || finished.Stopped):
		return r.cutShort(it, cause, limit)
	case expired(err):
		return r.judge(it, unprompted(err))
	case err != nil:
		return r.judge(it, err)
	case finished.Error != nil && finished.Error.Code == pluginv1.CodeRetry:
		return finished.Error
	case finished.Error != nil:
		return r.judge(it, finished.Error)
	case finished.Stopped:
		return it.failure(r.o.File, &pluginv1.Error{Message: "the plugin stopped early without having been asked to"})
	}
	it.out.Outcome = report.Changed
	if len(it.out.Changes) == 0 {
		it.out.Outcome = report.Unchanged
	}
	if len(finished.Deferred) > 0 {
		r.leave(it, finished.Deferred)
	}
	return nil
}

// cutShort says why a document was not finished.
func (r *run) cutShort(it *item, cause error, limit time.Duration) error {
	if !errors.Is(cause, errOverdue) {
		return r.overdue(cause)
	}
	return &failure{exit: report.ExitDeadline, detail: it.stderr(), err: it.located(r.o.File, report.Error{
		Code: report.CodeDeadline, Message: fmt.Sprintf("applying it took longer than its %s", limit),
		Hint: "raise metadata.timeout if it needs longer; running again is safe",
	}, "metadata.timeout")}
}
