package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run/values"
)

// Execute runs a stream and returns its report, and the raw output of other programs by the name in the report's errors. The
// caller sets run ID, host and start time in head. Every end of a run is in the report, with outcome, exit code and errors.
func Execute(ctx context.Context, o Options, deps Dependencies, head report.Report) (report.Report, map[string]string) {
	o.Timeout, o.PlanTimeout = cmp.Or(o.Timeout, RunTimeout), cmp.Or(o.PlanTimeout, PlanTimeout)
	o.Grace, o.Retry = cmp.Or(o.Grace, StopGrace), cmp.Or(o.Retry, DefaultRetry())
	deps.Log = cmp.Or(deps.Log, slog.New(slog.DiscardHandler))
	if deps.Observe == nil {
		deps.Observe = func(Event) {}
	}
	head.Outcome = report.RunRunning
	r := newRunner(o, deps, head)
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	return r.finish(context.WithoutCancel(ctx), r.execute(ctx))
}

func newRunner(o Options, deps Dependencies, head report.Report) *runner {
	r := &runner{
		o: o, deps: deps, log: deps.Log, claimKey: make([]byte, 32), head: head, counted: head.StreamDigest,
		times: values.NewTimes(head.StartedAt),
	}
	_, _ = rand.Read(r.claimKey) // never fails: crypto/rand ends the process instead
	return r
}

// execute passes the stream through the stages. The error ends the run: problems that are in the results of documents
// already, or an error of the run.
func (r *runner) execute(ctx context.Context) error {
	s, err := values.Read("", r.o.Stream)
	if err != nil {
		return err
	}
	if r.o.Mode != ModeValidate && r.image() && !r.o.AllowSecrets {
		s = values.WithoutSecrets(s)
	}
	r.begin(s)
	if r.deps.Reboots != nil {
		if r.requests, err = r.deps.Reboots.Requests(); err != nil {
			return values.StateError("", err)
		}
	}
	started, _ := r.report()
	r.emit(Event{Type: EventRunStarted, Report: &started})
	if err := r.record(); err != nil {
		return err
	}
	expanded, err := r.expand(ctx, s)
	if err != nil {
		return err
	}
	s = expanded
	r.begin(s)
	switch {
	case r.o.ContractOnly:
		return r.checkContract(s)
	case r.o.ResolveOnly:
		return r.showResolved(s)
	}
	all, err := r.prepare(ctx, s)
	if err != nil || r.o.Mode != ModeApply {
		return err
	}
	return r.applyAll(ctx, all)
}

// begin sets the documents of the run, with the results of those that are wrong.
func (r *runner) begin(s values.Stream) {
	r.docs, r.results, r.problems = s.Docs, make([]values.Result, len(s.Docs)), s.Problems
	for i, d := range s.Docs {
		if len(d.Wrong) > 0 {
			r.results[i] = values.Failed(d.Wrong)
		}
	}
}

// prepare binds and plans every document. It collects the errors of all documents.
func (r *runner) prepare(ctx context.Context, s values.Stream) ([]values.Planned, error) {
	ctx, cancel := r.untilInterrupted(ctx)
	defer cancel()
	r.times.Enter(report.StageStart)
	bound, err := r.bindAll(ctx, s)
	if err != nil {
		return nil, err
	}
	r.times.Enter(report.StagePlan)
	all, err := r.planAll(ctx, bound)
	wrong := slices.Clone(s.Problems)
	for i, p := range all {
		r.results[i] = p.Result
		switch r.o.Mode {
		case ModePlan:
			r.results[i] = p.Outcome(r.image())
		case ModeApply: // the run can end before its turn
			r.results[i] = p.Result.Warn(p.Plan.Warnings...)
		case ModeValidate: // no document-planned has them
			r.results[i] = r.warn(p.Doc, p.Result, p.Plan.Warnings...)
		}
		wrong = append(wrong, p.Result.Problems...)
	}
	if err != nil {
		return all, err
	}
	more, err := r.checkFaulty(ctx, s)
	if err != nil {
		return all, err
	}
	r.problems = append(r.problems, more...)
	if wrong = append(wrong, more...); len(wrong) > 0 {
		return all, wrong.Sorted()
	}
	if err := r.checkApplicable(all); err != nil {
		return all, err
	}
	return all, r.checkChoices(all)
}

// checkChoices refuses an image that takes no choices of providers, which are saved before its first change.
func (r *runner) checkChoices(all []values.Planned) error {
	changing := slices.ContainsFunc(all, func(p values.Planned) bool {
		return !p.Result.Settled && (p.Pending != nil || p.Deferred(r.image()) < len(p.Plan.Changes))
	})
	if r.deps.Choosable == nil || r.o.Mode == ModeValidate || !changing {
		return nil
	}
	err := r.deps.Choosable()
	if err == nil {
		return nil
	}
	return values.OfRun(report.Error{
		Code: pluginv1.CodePrecondition.String(), File: r.o.Stream.File, Message: "the image takes no choices of providers: " + err.Error(),
		Hint: "correct what the path names (namei -l, lsattr -d), then run again",
	})
}

// checkFaulty validates the specs of documents that the decoder refused, so that one run reports all errors of a stream. It
// omits findings of a plugin in fields that the decoder refused.
func (r *runner) checkFaulty(ctx context.Context, s values.Stream) (values.Problems, error) {
	if len(s.Faulty) == 0 {
		return nil, nil
	}
	o, deps := r.o, r.deps
	o.Mode, deps.State = ModeValidate, nil
	deps.Observe = func(Event) {} // a faulty document is in no report
	validation := newRunner(o, deps, r.head)
	bound, err := validation.bindAll(ctx, values.Stream{Docs: s.Faulty})
	if err != nil {
		return nil, err
	}
	var out values.Problems
	for _, b := range bound {
		p, err := validation.planFirst(ctx, b, outlook{})
		if err != nil {
			return nil, err
		}
		for _, x := range p.Result.Problems {
			if x.Err.Code == pluginv1.CodeInvalidConfig.String() && !s.RefusedField(b.Doc, x.Err.Field) {
				out = append(out, x)
			}
		}
	}
	return out, nil
}

// checkApplicable refuses a stream without any document for this machine, which would succeed without doing anything.
func (r *runner) checkApplicable(all []values.Planned) error {
	for _, p := range all {
		resolved := p.Source != nil && p.Pending == nil // applies only by the documents of its stream
		if p.Result.Outcome != report.NotApplicable && !resolved {
			return nil
		}
	}
	if len(all) == 0 || r.o.Mode == ModeValidate {
		return nil
	}
	return values.OfRun(report.Error{
		Code: pluginv1.CodePrecondition.String(), File: r.o.Stream.File,
		Message: fmt.Sprintf("no document of the stream applies to this machine (os %s, distribution %s, architecture %s)",
			r.o.Target.OS, cmp.Or(r.o.Target.Distribution, "unknown"), r.o.Target.Architecture),
		Hint: "compare metadata.when of the documents with the machine",
	})
}
