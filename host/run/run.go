package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
)

// run is one run.
type run struct {
	o         Options
	with      Surroundings
	report    *report.Report
	details   map[string]string
	items     []*item
	changed   bool  // something on the machine was changed, or may have been
	recordErr error // the first time that the report could not be kept
	rebootDue bool  // an earlier run of the stream asked for a reboot, and the machine has not made it yet
}

// item is one document on its way.
type item struct {
	doc      *document.Document
	out      *report.Document
	json     []byte
	provider string
	refused  bool // by the host itself
	binary   string
	plugin   *launch.Plugin
	kind     pluginv1.Kind

	plan    pluginv1.Plan
	pending string          // why the first planning could not decide; empty when it could
	fresh   bool            // plan still tells how the machine is
	asked   pluginv1.Reboot // the soonest reboot that a change asked for
}

// Execute runs a stream and fills the report, which comes with its head (run ID, host, start) filled in. Every way a
// run can end is in the report: its outcome, its exit code, its errors.
func Execute(ctx context.Context, o Options, with Surroundings, head report.Report) (report.Report, map[string]string) {
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
	head.Outcome = report.RunRunning
	r := &run{o: o, with: with, report: &head, details: map[string]string{}}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	r.finish(context.WithoutCancel(ctx), r.execute(ctx))
	return *r.report, r.details
}

func (r *run) execute(ctx context.Context) error {
	bad, err := r.decode()
	if err != nil {
		return err
	}
	r.emit(Event{Type: EventRunStarted, Report: r.report})
	if err := r.record(); err != nil {
		return err
	}
	if err := r.prepare(ctx, bad); err != nil {
		return err
	}
	if r.o.Mode != ModeApply {
		return nil
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	return r.applyAll(ctx)
}

// prepare binds and plans every document. A document that is refused stops nothing here: what is wrong with the others
// is told in the same breath.
func (r *run) prepare(ctx context.Context, bad *refusal) error {
	ctx, cancel := r.untilInterrupted(ctx)
	defer cancel()
	err := r.bindAll(ctx, bad)
	if err == nil {
		err = r.planAll(ctx, bad)
	}
	var f *failure
	if errors.As(err, &f) && len(bad.errors) > 0 && f.exit != report.ExitInterrupted && f.exit != report.ExitState {
		if !r.ownError(f) {
			bad.errors = append(bad.errors, f.err)
		}
		return bad
	}
	if err != nil {
		return err
	}
	return bad.orNil()
}

// untilInterrupted is for work that changes nothing: it need not end in order.
func (r *run) untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
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

// decode judges the stream itself. What is wrong with single documents is collected.
func (r *run) decode() (*refusal, error) {
	stream, err := document.Decode(r.o.File, bytes.NewReader(r.o.Stream))
	if err != nil {
		return nil, &failure{exit: report.ExitUsage, err: report.Error{
			Code: pluginv1.CodeInvalidConfig.String(), Message: err.Error(), File: r.o.File,
		}}
	}
	bad := &refusal{}
	for _, e := range stream.Errors {
		bad.add(e)
	}
	for _, d := range stream.Documents {
		refused := r.inspect(d)
		for _, e := range refused {
			bad.add(e)
		}
		r.items = append(r.items, &item{doc: d, provider: d.Provider, refused: len(refused) > 0})
		r.report.Documents = append(r.report.Documents, report.Document{
			Index: d.Index, APIVersion: d.APIVersion, Kind: d.Kind, Name: d.Name, Provider: d.Provider,
		})
	}
	for i, it := range r.items { // only now: append moves the slice
		it.out = &r.report.Documents[i]
		if it.refused {
			it.out.Outcome = report.Failed
		}
	}
	return bad, nil
}

// interrupted says whether an early end was asked for.
func (r *run) interrupted() bool {
	select {
	case <-r.o.Interrupt:
		return true
	default:
		return false
	}
}

// checkpoint is passed before each step that could also be left undone.
func (r *run) checkpoint(ctx context.Context) error {
	if r.interrupted() {
		return interruptedFailure()
	}
	if err := ctx.Err(); err != nil {
		return r.overdue(err)
	}
	return nil
}

// overdue is the end of a run whose context has ended with err.
func (r *run) overdue(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &failure{exit: report.ExitDeadline, err: report.Error{
			Code: report.CodeDeadline, Message: fmt.Sprintf("the run took longer than its %s", r.o.Timeout),
			Hint: "run it again, with a longer --timeout if it needs one",
		}}
	}
	return interruptedFailure()
}

func (r *run) emit(e Event) {
	e.Time = time.Now()
	r.with.Observe(e)
}

// record keeps the report on disk. A run whose report cannot be kept must not go on changing things.
func (r *run) record() error {
	if r.with.Record != nil && r.recordErr == nil {
		r.recordErr = r.with.Record(*r.report, r.details)
	}
	if r.recordErr != nil {
		return stateFailure(r.recordErr)
	}
	return nil
}

// locate turns a violation into an error of the stream, with its place.
func (it *item) locate(file string, v document.Violation) *document.Error {
	return &document.Error{
		File: file, Index: it.doc.Index, Kind: it.doc.Kind, Name: it.doc.Name,
		Field: v.Field, Position: it.doc.Locate(v.Field), Message: v.Message, Hint: v.Hint,
	}
}
