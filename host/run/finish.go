package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// fail settles a document that failed. The failure is the end of the run, if nothing else is.
func (r *run) fail(it *item, err error) *failure {
	var f *failure
	if !errors.As(err, &f) {
		f = &failure{exit: report.ExitFailed, err: report.Error{Code: pluginv1.CodeInternal.String(), Message: err.Error()}}
	}
	if f.err.Code == pluginv1.CodeInvalidConfig.String() && r.changed {
		f.exit = report.ExitFailed // exit 2 promises that nothing was changed
	}
	if f.detail != "" {
		f.err.Details = fmt.Sprintf("document-%d", it.doc.Index)
		r.details[f.err.Details] = f.detail
	}
	it.out.Outcome = report.Failed
	out := f.err
	it.out.Error = &out
	return f
}

// finish gives the run its outcome and exit code. The sentinel comes last: when it is there, the report is too, and
// nothing of the run is left to go on with.
func (r *run) finish(ctx context.Context, err error) {
	r.settle(err)
	if r.done() {
		r.settleAnyway(r.wantedReboot())
	}
	if r.report.ExitCode == report.ExitReboot {
		if err := r.prepareReboot(ctx); err != nil {
			r.report.Errors = nil // the reboot that was asked for and will not be
			r.settle(err)
		}
	}
	r.settleAnyway(r.endResume(ctx))
	for i := range r.report.Documents {
		d := &r.report.Documents[i]
		open := r.o.Mode == ModePlan && err == nil // what a plan cannot decide yet has no outcome
		if d.Outcome == "" && !open {
			d.Outcome = report.Skipped
		}
	}
	r.report.FinishedAt = time.Now().UTC()
	if r.recordErr == nil {
		if err := r.record(); err != nil {
			r.unrecorded(ctx, err)
		}
	}
	if r.recordErr != nil {
		_ = r.with.Record(*r.report, r.details) // one of its places may still take it; the error is that of before
	}
	if r.done() {
		if err := r.succeed(ctx); err != nil {
			r.settle(err)
			r.settleAnyway(r.record())
		}
	}
	r.emit(Event{Type: EventRunFinished, Report: r.report})
}

// done says whether an apply has ended without an error.
func (r *run) done() bool { return r.report.ExitCode == report.ExitOK && r.o.Mode == ModeApply }

// settleAnyway adds an error to those of a run that has failed already.
func (r *run) settleAnyway(err error) {
	if err != nil {
		r.settle(err)
	}
}

// unrecorded tells that the last words of a run were not kept. The exit code stays that of what went wrong before. There
// is no reboot then, and so nothing that goes on after it, unless it is that of an earlier run.
func (r *run) unrecorded(ctx context.Context, err error) {
	code, outcome := r.report.ExitCode, r.report.Outcome
	own := code == report.ExitReboot && !r.rebootDue
	if own {
		r.report.Errors = nil
	}
	r.settle(err)
	if own {
		r.settleAnyway(r.endResume(ctx))
	}
	if code != report.ExitOK && code != report.ExitReboot {
		r.report.ExitCode, r.report.Outcome = code, outcome
	}
}

// succeed tells everyone, if everything is so: only a live run of all phases in which nothing was left.
func (r *run) succeed(ctx context.Context) error {
	if err := r.forgetResume(ctx); err != nil {
		return err
	}
	if r.with.Reboots != nil {
		if err := r.with.Reboots.ForgetReboots(); err != nil {
			return stateFailure(err)
		}
	}
	if r.with.Sentinel == nil || r.o.Phase != pluginv1.PhaseUnspecified {
		return nil
	}
	for _, it := range r.items {
		if it.out.Outcome == report.Deferred {
			return nil
		}
	}
	if err := r.with.Sentinel.Write(); err != nil {
		return stateFailure(fmt.Errorf("write the sentinel: %w", err))
	}
	return nil
}

// settle writes an end of the run into the report.
func (r *run) settle(err error) {
	var f *failure
	var bad *refusal
	switch {
	case err == nil:
		r.report.Outcome, r.report.ExitCode = report.RunSucceeded, r.success()
	case errors.As(err, &bad):
		r.report.Outcome, r.report.ExitCode = report.RunInvalid, bad.exit()
		r.report.Errors = append(r.report.Errors, bad.errors...)
	case errors.As(err, &f):
		r.report.ExitCode = f.exit
		r.report.Outcome = r.outcomeOf(f)
		if !r.ownError(f) {
			r.report.Errors = append(r.report.Errors, f.err)
		}
	default:
		r.report.Outcome, r.report.ExitCode = report.RunFailed, report.ExitFailed
		r.report.Errors = append(r.report.Errors,
			report.Error{Code: pluginv1.CodeInternal.String(), Message: err.Error()})
	}
}

func (r *run) outcomeOf(f *failure) report.Outcome {
	switch f.exit {
	case report.ExitReboot:
		return report.RunRebootRequired
	case report.ExitInterrupted:
		return report.RunInterrupted
	case report.ExitUsage:
		return report.RunInvalid
	default:
		return report.RunFailed
	}
}

// ownError says whether a document of the report tells this error already.
func (r *run) ownError(f *failure) bool {
	for _, d := range r.report.Documents {
		if d.Error != nil && d.Error.Message == f.err.Message && d.Error.Code == f.err.Code {
			return true
		}
	}
	return false
}

// success is the exit code of a run without errors: a plan that has something to do says so.
func (r *run) success() int {
	if r.o.Mode != ModePlan {
		return report.ExitOK
	}
	for _, it := range r.items {
		if it.pending != "" || it.out.Outcome == report.Changed {
			return report.ExitDiffers
		}
	}
	return report.ExitOK
}
