package run

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// runner is one run: what it works with, and what has come of it so far.
type runner struct {
	o        Options
	with     Dependencies
	log      *slog.Logger
	claimKey []byte

	progress progress
	changed  bool  // something on the machine was changed, or may have been
	unkept   error // the first time that the report could not be kept
}

// Execute runs a stream and returns its report, whose head (run ID, host, start) is given, and the raw output of other
// programs by the names that its errors give. Every way a run can end is in the report: its outcome, its exit code, its
// errors.
func Execute(ctx context.Context, o Options, with Dependencies, head report.Report) (report.Report, map[string]string) {
	if o.Timeout == 0 {
		o.Timeout = RunTimeout
	}
	if o.PlanTimeout == 0 {
		o.PlanTimeout = PlanTimeout
	}
	if o.Grace == 0 {
		o.Grace = StopGrace
	}
	if o.Retry == (RetryPolicy{}) {
		o.Retry = DefaultRetry()
	}
	if with.Observe == nil {
		with.Observe = func(Event) {}
	}
	if with.Log == nil {
		with.Log = slog.New(slog.DiscardHandler)
	}
	head.Outcome = report.RunRunning
	r := &runner{o: o, with: with, log: with.Log, claimKey: make([]byte, 32), progress: progress{head: head}}
	_, _ = rand.Read(r.claimKey) // it never fails: crypto/rand ends the process instead
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	return r.finish(context.WithoutCancel(ctx), r.execute(ctx))
}

// execute takes the stream through its stages. The error is what ended the run: problems that stand in the results of
// documents already, or an *ending.
func (r *runner) execute(ctx context.Context) error {
	s, err := read(r.o.File, r.o.Stream)
	if err != nil {
		return &ending{asProblems(err)}
	}
	s = expand(s)
	if r.o.Mode != ModeValidate && r.o.Root != "" && !r.o.AllowSecrets {
		s = withoutSecrets(s)
	}
	r.progress.docs, r.progress.results = s.docs, make([]result, len(s.docs))
	r.progress.problems = s.problems
	for i, wrong := range s.refused {
		r.progress.results[i] = failed(wrong)
	}
	if r.with.Reboots != nil {
		if r.progress.requests, err = r.with.Reboots.Requests(); err != nil {
			return &ending{stateProblem(err)}
		}
	}
	started, _ := r.progress.report()
	r.emit(Event{Type: EventRunStarted, Report: &started})
	if err := r.record(); err != nil {
		return err
	}
	if r.o.ContractOnly {
		return r.checkContract(s)
	}
	all, err := r.prepare(ctx, s)
	if err != nil || r.o.Mode != ModeApply {
		return err
	}
	return r.applyAll(ctx, all)
}

// prepare binds and plans every document. The errors of all documents are collected.
func (r *runner) prepare(ctx context.Context, s stream) ([]planned, error) {
	ctx, cancel := r.untilInterrupted(ctx)
	defer cancel()
	bound, err := r.bindAll(ctx, s)
	if err != nil {
		return nil, err
	}
	all, err := r.planAll(ctx, bound)
	wrong := s.problems
	for i, p := range all {
		r.progress.results[i] = p.result
		r.progress.results[i].by = p.by
		if r.o.Mode == ModePlan {
			r.progress.results[i] = p.outcome(r.o.Root != "")
		}
		wrong = append(wrong, p.result.problems...)
	}
	if err == nil && len(s.faulty) > 0 {
		var more problems
		more, err = r.checkFaulty(ctx, s)
		r.progress.problems = append(r.progress.problems, more...)
		wrong = append(wrong, more...)
	}
	if err == nil && len(wrong) == 0 {
		err = r.applicable(all)
	}
	if err == nil {
		err = wrong.sorted().orNil()
	}
	return all, err
}

// checkFaulty validates the specs of documents that the decoder refused, so that one run reports all errors of a stream.
// Findings of a plugin on a field that was refused already, or in one, are left out.
func (r *runner) checkFaulty(ctx context.Context, s stream) (problems, error) {
	validation := *r
	validation.o.Mode, validation.with.State = ModeValidate, nil
	r = &validation
	bound, err := r.bindAll(ctx, stream{docs: s.faulty})
	if err != nil {
		return nil, err
	}
	var out problems
	for _, b := range bound {
		p, err := r.planFirst(ctx, b)
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

// applicable refuses a stream of which no document applies to this machine: it would succeed without having done anything.
func (r *runner) applicable(all []planned) error {
	for _, p := range all {
		if p.result.outcome != report.NotApplicable {
			return nil
		}
	}
	if len(all) == 0 || r.o.Mode == ModeValidate {
		return nil
	}
	return &ending{one(report.Error{
		Code: "Precondition", File: r.o.File,
		Message: fmt.Sprintf("no document of the stream applies to this machine (os %s, distribution %s, architecture %s)",
			r.o.Target.OS, firstOf(r.o.Target.Distribution, "unknown"), r.o.Target.Architecture),
		Hint: "compare metadata.when of the documents with the machine",
	})}
}

// untilInterrupted is for work that changes nothing: it need not end in order.
func (r *runner) untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-r.o.Interrupt:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// interrupted says whether an early end was asked for.
func (r *runner) interrupted() bool {
	select {
	case <-r.o.Interrupt:
		return true
	default:
		return false
	}
}

// checkpoint is passed before each step that could also be left undone.
func (r *runner) checkpoint(ctx context.Context) error {
	if r.interrupted() {
		return &ending{interrupted()}
	}
	if err := ctx.Err(); err != nil {
		return r.overdue(err)
	}
	return nil
}

// overdue is the end of a run whose context has ended with err.
func (r *runner) overdue(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &ending{one(report.Error{
			Code: report.CodeDeadline, Message: fmt.Sprintf("the run took longer than its %s", r.o.Timeout),
			Hint: "run it again, with a longer --timeout if it needs one",
		})}
	}
	return &ending{interrupted()}
}

func (r *runner) emit(e Event) {
	e.Time = time.Now()
	r.with.Observe(e)
}

func (r *runner) started(p planned) {
	d := fold(p.doc, result{by: p.by})
	r.emit(Event{Type: EventDocumentStarted, Document: &d})
}

// finished reports the end of a document's turn.
func (r *runner) finished(place int) {
	res := r.progress.results[place]
	d := fold(r.progress.docs[place], res)
	e := Event{Type: EventDocumentFinished, Document: &d}
	for _, x := range res.problems {
		e.Errors = append(e.Errors, x.err)
	}
	r.emit(e)
}

// record keeps the report on disk. A run whose report cannot be kept must not go on changing things.
func (r *runner) record() error {
	if r.with.Record != nil && r.unkept == nil {
		r.unkept = r.with.Record(r.progress.report())
	}
	if r.unkept != nil {
		return &ending{stateProblem(r.unkept)}
	}
	return nil
}

// recordWith is record in the middle of a document's turn.
func (r *runner) recordWith(d doc, res result) error {
	for i := range r.progress.docs {
		if r.progress.docs[i].id == d.id {
			r.progress.results[i] = res
		}
	}
	return r.record()
}
