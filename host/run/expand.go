package run

import (
	"context"
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run/expand"
	"github.com/machineadm/machineadm/host/run/values"
)

// expand puts the documents of its stream behind each reference. An error ends the run.
func (r *runner) expand(ctx context.Context, s values.Stream) (values.Stream, error) {
	r.expander = expand.New(expand.Options{
		Validate: r.o.Mode == ModeValidate, Apply: r.o.Mode == ModeApply, Resumed: r.o.Resumed,
		WithoutSecrets: r.image() && !r.o.AllowSecrets, Target: r.o.Target, Text: r.o.Text,
		Timeout: r.o.Timeout, PlanTimeout: r.o.PlanTimeout, Resolved: r.deps.Resolved, StreamDigest: r.deps.StreamDigest,
		At: r.times.At, Log: r.log, Run: around{r},
	}, s.Docs)
	if r.o.ContractOnly || !slices.ContainsFunc(s.Docs, values.Doc.IsReference) {
		return s, nil
	}
	r.times.Enter(report.StageResolve)
	ctx, cancel := r.untilInterrupted(ctx)
	defer cancel()
	out, err := r.expander.Stream(ctx, s)
	if err != nil {
		return s, err
	}
	return out, r.updateDigest()
}

// updateDigest makes the stream digest of the report cover the streams of references.
func (r *runner) updateDigest() error {
	streamDigest, err := r.expander.Digest()
	if streamDigest != "" {
		r.head.StreamDigest = streamDigest
	}
	return err
}

// around is the run around a reference.
type around struct{ r *runner }

// Checkpoint implements expand.Run.
func (a around) Checkpoint(ctx context.Context) error { return a.r.checkpoint(ctx) }

// Bind implements expand.Run.
func (a around) Bind(ctx context.Context, d values.Doc) (values.Result, error) {
	b, err := a.r.bind(ctx, bound{Doc: d, provider: d.Provider})
	if err != nil || b.result.Settled {
		return b.result, err
	}
	return values.Result{By: b.ranks[0][0]}, nil
}

// Warn implements expand.Run.
func (a around) Warn(d values.Doc, res values.Result, warnings ...pluginv1.Warning) values.Result {
	return a.r.warn(d, res, warnings...)
}

// Progress implements expand.Run.
func (a around) Progress(d values.Doc, res values.Result, message string) {
	a.r.emitFor(d, res, Event{Type: EventProgress, Message: message})
}

// Waits implements expand.Run.
func (a around) Waits(d values.Doc, message string, first bool) {
	res := a.r.results[d.Order]
	a.r.emitFor(d, res, Event{Type: EventRetry, Message: message})
	if !first {
		return
	}
	a.r.results[d.Order] = res.Warn(pluginv1.Warning{Message: "waiting: " + message})
	_ = a.r.record() // the next record returns the error
	a.r.results[d.Order] = res
}

// showResolved ends a run after its documents are resolved. One that cannot be resolved now is an error.
func (r *runner) showResolved(s values.Stream) error {
	wrong := slices.Clone(s.Problems)
	for i, d := range s.Docs {
		if d.Source != nil {
			r.results[i] = d.Source.Result
		}
		if d.Source != nil && d.Source.Pending != nil {
			r.results[i] = r.results[i].Fail(d.FromPlugin(d.Source.Result.By, d.Source.Pending))
		}
		wrong = append(wrong, r.results[i].Problems...)
	}
	return wrong.Sorted().OrNil()
}
