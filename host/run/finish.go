package run

import (
	"errors"
	"fmt"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// fail settles the document at which a run ends.
func (r *run) fail(it *item, err error) error {
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

func (r *run) rebootRequired(it *item) error {
	it.out.Outcome = report.RebootRequired
	return &failure{exit: report.ExitReboot, err: report.Error{
		Code: report.CodeReboot, Document: label(it.doc.Kind, it.doc.Name), Message: "the machine must reboot before the next document",
		Hint: "reboot, then run the same command again",
	}}
}

// finish gives the run its outcome and exit code, and writes the sentinel when everything is so.
func (r *run) finish(err error) {
	r.settle(err)
	if r.report.ExitCode == report.ExitOK && r.o.Mode == ModeApply {
		if err := r.complete(); err != nil {
			r.settle(err)
		}
	}
	for i := range r.report.Documents {
		d := &r.report.Documents[i]
		if d.Outcome == "" && !(r.o.Mode == ModePlan && err == nil) {
			d.Outcome = report.Skipped
		}
	}
	r.report.FinishedAt = time.Now().UTC()
	if recordErr := r.record(); recordErr != nil && r.report.ExitCode == report.ExitOK {
		r.settle(recordErr)
	}
	r.emit(Event{Type: EventRunFinished, Report: r.report})
}

// complete is the end of a run without errors: a reboot that some change asked for, or success.
func (r *run) complete() error {
	for _, it := range r.items {
		if it.reboot() == pluginv1.RebootAfterRun {
			return r.rebootAfterRun(it)
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

func (r *run) rebootAfterRun(it *item) error {
	return &failure{exit: report.ExitReboot, err: report.Error{
		Code: report.CodeReboot, Document: label(it.doc.Kind, it.doc.Name), Message: "every document is done; the machine must reboot",
		Hint: "reboot, then run the same command again",
	}}
}

// settle writes an end of the run into the report.
func (r *run) settle(err error) {
	var f *failure
	var bad *refusal
	switch {
	case err == nil:
		r.report.Outcome, r.report.ExitCode = report.RunSucceeded, r.success()
	case errors.As(err, &bad):
		r.report.Outcome, r.report.ExitCode = report.RunInvalid, max(bad.exit, report.ExitUsage)
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
	switch {
	case f.exit == report.ExitReboot:
		return report.RunRebootRequired
	case f.exit == report.ExitInterrupted:
		return report.RunInterrupted
	case f.exit == report.ExitUsage:
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
