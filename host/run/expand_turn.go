package run

import (
	"context"
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// resolvePending resolves a reference at its turn. All documents of its stream are planned before any of them is applied, and compared
// with the claims of the other documents.
func (r *runner) resolvePending(ctx context.Context, p *planned, res result, end time.Time) (result, error) {
	ctx, cancel := r.untilInterrupted(ctx)
	defer cancel()
	ctx, cancelLimit := context.WithDeadlineCause(ctx, end, errTimedOut)
	defer cancelLimit()
	x := r.expander
	state, below, err := x.resolve(ctx, p.doc, limit{tries: time.Until(end)})
	for _, w := range state.result.waits {
		res = res.wait(w.Reason, w.StartedAt, time.Duration(w.DurationMs)*time.Millisecond)
	}
	switch {
	case err != nil:
		return res, p.withinLimit(ctx, err)
	case state.pending != nil && state.pending.Code == pluginv1.CodeRetry:
		return res, state.pending
	case state.pending != nil:
		return res, p.fromPlugin(res.by, state.pending)
	case state.result.outcome == report.Failed:
		return res, state.result.problems
	}
	for _, text := range state.result.warnings { // resolve has emitted them
		res = res.warn(pluginv1.Warning{Message: text})
	}
	if len(below.problems) > 0 {
		return res, p.own(below.problems.sorted())
	}
	var more stream
	if err := x.all(ctx, below.docs, &more, x.stage()); err != nil {
		return res, p.withinLimit(ctx, err)
	}
	if err := x.updateDigest(); err != nil {
		return res, err
	}
	if len(more.problems) > 0 {
		return res, p.own(more.problems.sorted())
	}
	return res.end(report.Unchanged, report.ReasonResolved), p.withinLimit(ctx, r.insert(ctx, p.index+1, more))
}

// insert binds and plans documents that follow at this index, before any of them is applied.
func (r *runner) insert(ctx context.Context, at int, s stream) error {
	n := len(s.docs)
	for i := range s.docs {
		s.docs[i].index = at + i
	}
	bound, err := r.bindAll(ctx, s)
	if err != nil {
		return err
	}
	planned, err := r.planAll(ctx, bound)
	if err != nil {
		return err
	}
	r.docs = slices.Insert(r.docs, at, s.docs...)
	r.results = slices.Insert(r.results, at, make([]result, n)...)
	r.all = slices.Insert(slices.Clone(r.all), at, planned...)
	for i := range r.all {
		r.all[i].index, r.docs[i].index = i, i
	}
	conflicting := conflicts(r.all)
	var wrong problems
	for i := at; i < at+n; i++ {
		p := &r.all[i]
		said := func(x problem) bool { return x.err.Code == report.CodeConflict } // of two that are both inserted
		if more := conflicting[i]; len(more) > 0 && !slices.ContainsFunc(p.result.problems, said) {
			p.result = p.result.fail(slices.Concat(p.result.problems, more))
		}
		r.results[i] = p.result.warn(p.plan.Warnings...)
		wrong = append(wrong, p.result.problems...)
	}
	if len(wrong) > 0 {
		return wrong.sorted()
	}
	return nil
}
