package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
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
	r := &runner{o: o, deps: deps, log: deps.Log, claimKey: make([]byte, 32), head: head, counted: head.StreamDigest}
	r.times = times{start: head.StartedAt, stages: []stage{{report.StagePrepare, head.StartedAt}}, plans: map[string]time.Duration{}}
	_, _ = rand.Read(r.claimKey) // never fails: crypto/rand ends the process instead
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	return r.finish(context.WithoutCancel(ctx), r.execute(ctx))
}

// execute passes the stream through the stages. The error ends the run: problems that are in the results of documents
// already, or an error of the run.
func (r *runner) execute(ctx context.Context) error {
	s, err := read("", r.o.Stream)
	if err != nil {
		return err
	}
	if r.o.Mode != ModeValidate && r.image() && !r.o.AllowSecrets {
		s = withoutSecrets(s)
	}
	r.begin(s)
	if r.deps.Reboots != nil {
		if r.requests, err = r.deps.Reboots.Requests(); err != nil {
			return stateError("", err)
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
func (r *runner) begin(s stream) {
	r.docs, r.results, r.problems = s.docs, make([]result, len(s.docs)), s.problems
	for i, d := range s.docs {
		if len(d.wrong) > 0 {
			r.results[i] = failed(d.wrong)
		}
	}
}

// prepare binds and plans every document. It collects the errors of all documents.
func (r *runner) prepare(ctx context.Context, s stream) ([]planned, error) {
	ctx, cancel := r.untilInterrupted(ctx)
	defer cancel()
	r.times.enter(report.StageStart)
	bound, err := r.bindAll(ctx, s)
	if err != nil {
		return nil, err
	}
	r.times.enter(report.StagePlan)
	all, err := r.planAll(ctx, bound)
	wrong := slices.Clone(s.problems)
	for i, p := range all {
		r.results[i] = p.result
		switch r.o.Mode {
		case ModePlan:
			r.results[i] = p.outcome(r.image())
		case ModeApply: // the run can end before its turn
			r.results[i] = p.result.warn(p.plan.Warnings...)
		case ModeValidate: // no document-planned has them
			r.results[i] = r.warn(p.doc, p.result, p.plan.Warnings...)
		}
		wrong = append(wrong, p.result.problems...)
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
		return all, wrong.sorted()
	}
	if err := r.checkApplicable(all); err != nil {
		return all, err
	}
	return all, r.checkChoices(all)
}

// checkChoices refuses an image that takes no choices of providers, which are saved before its first change.
func (r *runner) checkChoices(all []planned) error {
	changing := slices.ContainsFunc(all, func(p planned) bool {
		return !p.result.settled && (p.pending != nil || p.deferred(r.image()) < len(p.plan.Changes))
	})
	if r.deps.Choosable == nil || r.o.Mode == ModeValidate || !changing {
		return nil
	}
	err := r.deps.Choosable()
	if err == nil {
		return nil
	}
	return ofRun(report.Error{
		Code: pluginv1.CodePrecondition.String(), File: r.o.Stream.File, Message: "the image takes no choices of providers: " + err.Error(),
		Hint: "correct what the path names (namei -l, lsattr -d), then run again",
	})
}

// checkFaulty validates the specs of documents that the decoder refused, so that one run reports all errors of a stream. It
// omits findings of a plugin in fields that the decoder refused.
func (r *runner) checkFaulty(ctx context.Context, s stream) (problems, error) {
	if len(s.faulty) == 0 {
		return nil, nil
	}
	validation := *r
	validation.o.Mode, validation.deps.State = ModeValidate, nil
	validation.deps.Observe = func(Event) {} // a faulty document is in no report
	bound, err := validation.bindAll(ctx, stream{docs: s.faulty})
	if err != nil {
		return nil, err
	}
	var out problems
	for _, b := range bound {
		p, err := validation.planFirst(ctx, b, outlook{})
		if err != nil {
			return nil, err
		}
		for _, x := range p.result.problems {
			if x.err.Code == pluginv1.CodeInvalidConfig.String() && !s.refusedField(b.doc, x.err.Field) {
				out = append(out, x)
			}
		}
	}
	return out, nil
}

// checkApplicable refuses a stream without any document for this machine, which would succeed without doing anything.
func (r *runner) checkApplicable(all []planned) error {
	for _, p := range all {
		resolved := p.source != nil && p.pending == nil // applies only by the documents of its stream
		if p.result.outcome != report.NotApplicable && !resolved {
			return nil
		}
	}
	if len(all) == 0 || r.o.Mode == ModeValidate {
		return nil
	}
	return ofRun(report.Error{
		Code: pluginv1.CodePrecondition.String(), File: r.o.Stream.File,
		Message: fmt.Sprintf("no document of the stream applies to this machine (os %s, distribution %s, architecture %s)",
			r.o.Target.OS, cmp.Or(r.o.Target.Distribution, "unknown"), r.o.Target.Architecture),
		Hint: "compare metadata.when of the documents with the machine",
	})
}
