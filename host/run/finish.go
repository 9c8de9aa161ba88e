package run

import (
	"context"
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run/values"
)

// finish sets the outcome and exit code of the run. It writes the sentinel last, after the report and the removal of the
// pending run.
func (r *runner) finish(ctx context.Context, err error) (report.Report, map[string]string) {
	r.times.Enter(report.StageFinish)
	r.setOutcome(err)
	if q, due := r.dueReboot(); due && r.applied() {
		r.setOutcome(r.rebootRequired(q.Document, "every document is done; the machine must reboot"))
	}
	if r.head.ExitCode == report.ExitReboot {
		if err := r.prepareReboot(ctx); err != nil {
			r.problems = nil // the reboot, which will not be made
			r.setOutcome(err)
		}
	}
	r.addError(r.endResume(ctx))
	for i := range r.results {
		// A valid document has no outcome, nor has a pending document of a plan.
		undecided := r.o.Mode == ModeValidate || r.o.Mode == ModePlan && err == nil
		if !r.results[i].Settled && !undecided {
			r.results[i] = r.results[i].End(report.Skipped, "")
		}
	}
	r.times.End = time.Now()
	r.head.FinishedAt = r.times.End.UTC()
	r.recordEnd(ctx)
	if r.applied() {
		if err := r.succeed(ctx); err != nil {
			r.setOutcome(err)
			r.addError(r.record())
		}
	}
	out, details := r.report()
	r.emit(Event{Type: EventRunFinished, Report: &out})
	return out, details
}

// recordEnd saves the last report. After a failure it tries once more, because the state directory or the run directory may
// still be writable.
func (r *runner) recordEnd(ctx context.Context) {
	if r.recordErr == nil {
		if err := r.record(); err != nil {
			r.recordFailed(ctx, err)
		}
	}
	if r.recordErr != nil {
		_ = r.deps.Record(r.report()) // the run already reports recordErr
	}
}

// applied reports whether an apply has succeeded so far.
func (r *runner) applied() bool {
	return r.head.ExitCode == report.ExitOK && r.o.Mode == ModeApply
}

// addError sets the outcome of an error, and leaves it as it is without one.
func (r *runner) addError(err error) {
	if err != nil {
		r.setOutcome(err)
	}
}

// recordFailed adds the failure to save the last report. An earlier failure keeps its exit code. A reboot is not made then,
// and the next boot continues nothing.
func (r *runner) recordFailed(ctx context.Context, err error) {
	code, outcome := r.head.ExitCode, r.head.Outcome
	if code == report.ExitReboot {
		r.problems = nil
	}
	r.setOutcome(err)
	switch code {
	case report.ExitOK:
	case report.ExitReboot:
		r.addError(r.endResume(ctx))
	default:
		r.head.ExitCode, r.head.Outcome = code, outcome
	}
}

// setOutcome sets outcome and exit code by an error, nil for success. It adds errors of the run to the run's; others are in
// the results of documents.
func (r *runner) setOutcome(err error) {
	found := values.AsProblems(err)
	if len(found) == 0 {
		r.head.Outcome, r.head.ExitCode = report.RunSucceeded, r.success()
		return
	}
	if found[0].ID == "" {
		r.problems = append(r.problems, found...)
	}
	r.head.Outcome, r.head.ExitCode = report.Ending(found[0].Err.Code, r.changed)
}

// success returns the exit code of a run without errors, which for a plan depends on its changes.
func (r *runner) success() int {
	_, due := r.dueReboot()
	differs := due || slices.ContainsFunc(r.results, func(res values.Result) bool { return !res.Settled || res.Changed() })
	if r.o.Mode == ModePlan && differs && !r.o.ResolveOnly {
		return report.ExitDiffers
	}
	return report.ExitOK
}

// endResume sets how a run that has not succeeded resumes.
func (r *runner) endResume(ctx context.Context) (err error) {
	switch {
	case r.deps.Resume == nil || r.head.ExitCode == report.ExitOK:
		return nil
	case r.head.ExitCode == report.ExitReboot && r.o.Reboot:
		r.head.Resume = report.ResumeAtBoot
		return nil
	}
	complete := !slices.ContainsFunc(r.results, func(res values.Result) bool {
		return !res.Settled || res.Outcome == report.Failed || res.Outcome == report.Skipped
	})
	r.head.Resume, err = r.deps.Resume.End(ctx, r.head.Outcome, complete)
	return values.StateError("", err)
}

// succeed removes what was saved for later runs, and writes the sentinel after a live run of all phases that deferred
// nothing.
func (r *runner) succeed(ctx context.Context) error {
	if r.deps.Resume != nil {
		if _, err := r.deps.Resume.End(ctx, report.RunSucceeded, true); err != nil {
			return values.StateError("", err)
		}
	}
	if r.deps.Resolved != nil {
		if err := r.deps.Resolved.Forget(); err != nil {
			return values.StateError("remove what documents stood for", err)
		}
	}
	if r.deps.Reboots != nil {
		if err := r.deps.Reboots.Forget(); err != nil {
			return values.StateError("", err)
		}
	}
	deferred := slices.ContainsFunc(r.results, func(res values.Result) bool { return res.Outcome == report.Deferred })
	if r.deps.Sentinel == nil || r.o.Phase != pluginv1.PhaseUnspecified || deferred {
		return nil
	}
	return values.StateError("write the sentinel", r.deps.Sentinel.Write())
}
