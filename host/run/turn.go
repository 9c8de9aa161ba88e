package run

import (
	"context"
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run/claims"
	"github.com/machineadm/machineadm/host/run/values"
)

// resolvePending resolves a reference at its turn. All documents of its stream are planned before any of them is applied, and compared
// with the claims of the other documents.
func (r *runner) resolvePending(ctx context.Context, p *values.Planned, res values.Result, end time.Time) (values.Result, error) {
	ctx, cancel := r.untilInterrupted(ctx)
	defer cancel()
	ctx, cancelLimit := context.WithDeadlineCause(ctx, end, errTimedOut)
	defer cancelLimit()
	x := r.expander
	state, below, err := x.Document(ctx, p.Doc, time.Until(end))
	for _, w := range state.Result.Waits {
		res = res.Wait(w.Reason, w.StartedAt, time.Duration(w.DurationMs)*time.Millisecond)
	}
	switch {
	case err != nil:
		return res, withinLimit(ctx, p, err)
	case state.Pending != nil && state.Pending.Code == pluginv1.CodeRetry:
		return res, state.Pending
	case state.Pending != nil:
		return res, p.FromPlugin(res.By, state.Pending)
	case state.Result.Outcome == report.Failed:
		return res, state.Result.Problems
	}
	for _, text := range state.Result.Warnings { // the expander has emitted them
		res = res.Warn(pluginv1.Warning{Message: text})
	}
	if len(below.Problems) > 0 {
		return res, p.Own(below.Problems.Sorted())
	}
	more, err := x.Documents(ctx, below.Docs)
	if err != nil {
		return res, withinLimit(ctx, p, err)
	}
	if err := r.updateDigest(); err != nil {
		return res, err
	}
	if len(more.Problems) > 0 {
		return res, p.Own(more.Problems.Sorted())
	}
	return res.End(report.Unchanged, report.ReasonResolved), withinLimit(ctx, p, r.insert(ctx, p.Order+1, more))
}

// insert binds and plans documents that follow at this index, before any of them is applied.
func (r *runner) insert(ctx context.Context, at int, s values.Stream) error {
	n := len(s.Docs)
	for i := range s.Docs {
		s.Docs[i].Order = at + i
	}
	bound, err := r.bindAll(ctx, s)
	if err != nil {
		return err
	}
	planned, err := r.planAll(ctx, bound)
	if err != nil {
		return err
	}
	r.docs = slices.Insert(r.docs, at, s.Docs...)
	r.results = slices.Insert(r.results, at, make([]values.Result, n)...)
	r.all = slices.Insert(slices.Clone(r.all), at, planned...)
	for i := range r.all {
		r.all[i].Order, r.docs[i].Order = i, i
	}
	conflicting := claims.Conflicts(r.all)
	var wrong values.Problems
	for i := at; i < at+n; i++ {
		p := &r.all[i]
		said := func(x values.Problem) bool { return x.Err.Code == report.CodeConflict } // of two that are both inserted
		if more := conflicting[i]; len(more) > 0 && !slices.ContainsFunc(p.Result.Problems, said) {
			p.Result = p.Result.Fail(slices.Concat(p.Result.Problems, more))
		}
		r.results[i] = p.Result.Warn(p.Plan.Warnings...)
		wrong = append(wrong, p.Result.Problems...)
	}
	if len(wrong) > 0 {
		return wrong.Sorted()
	}
	return nil
}
