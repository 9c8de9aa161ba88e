package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// finish gives the run its outcome and exit code. The sentinel comes last: when it is there, the report is too, and
// nothing of the run is left to be continued.
func (r *runner) finish(ctx context.Context, err error) (report.Report, map[string]string) {
	r.settle(err)
	if q, due := r.dueReboot(); due && r.done() {
		r.settle(r.rebootProblem(q.Document, "every document is done; the machine must reboot"))
	}
	if r.progress.head.ExitCode == report.ExitReboot {
		if err := r.prepareReboot(ctx); err != nil {
			r.progress.problems = nil // the reboot that was asked for and will not be made
			r.settle(&ending{asProblems(err)})
		}
	}
	r.keepAnyway(r.endResume(ctx))
	for i := range r.progress.results {
		open := r.o.Mode == ModePlan && err == nil // what a plan cannot decide yet has no outcome
		if !r.progress.results[i].settled && !open {
			r.progress.results[i] = r.progress.results[i].end(report.Skipped, "")
		}
	}
	r.progress.head.FinishedAt = time.Now().UTC()
	r.recordEnd(ctx)
	if r.done() {
		if err := r.succeed(ctx); err != nil {
			r.settle(err)
			r.keepAnyway(r.record())
		}
	}
	out, details := r.progress.report()
	r.emit(Event{Type: EventRunFinished, Report: &out})
	return out, details
}

// recordEnd keeps the last report. What cannot be kept is tried once more: one of its places may still take it.
func (r *runner) recordEnd(ctx context.Context) {
	if r.unkept == nil {
		if err := r.record(); err != nil {
			r.unrecorded(ctx, err)
		}
	}
	if r.unkept != nil {
		_ = r.with.Record(r.progress.report()) // the error is that of before
	}
}

// done says whether an apply has ended without an error.
func (r *runner) done() bool {
	return r.progress.head.ExitCode == report.ExitOK && r.o.Mode == ModeApply
}

// keepAnyway adds an error to those of a run that may have failed already.
func (r *runner) keepAnyway(err error) {
	if err != nil {
		r.settle(err)
	}
}

// unrecorded reports that the end of a run was not kept. The exit code stays that of what went wrong before. There is no
// reboot then, and so nothing that continues after it.
func (r *runner) unrecorded(ctx context.Context, err error) {
	head := &r.progress.head
	code, outcome := head.ExitCode, head.Outcome
	if code == report.ExitReboot {
		r.progress.problems = nil
	}
	r.settle(err)
	if code == report.ExitReboot {
		r.keepAnyway(r.endResume(ctx))
	}
	if code != report.ExitOK && code != report.ExitReboot {
		head.ExitCode, head.Outcome = code, outcome
	}
}

// settle puts an end of the run into the report's head. An *ending adds its problems; any others stand in the results.
func (r *runner) settle(err error) {
	head := &r.progress.head
	found := asProblems(err)
	if len(found) == 0 {
		head.Outcome, head.ExitCode = report.RunSucceeded, r.success()
		return
	}
	if _, placed := err.(problems); !placed { //nolint:errorlint // the type itself says where the problems stand
		r.progress.problems = append(r.progress.problems, found...)
	}
	code := found[0].err.Code
	head.ExitCode = report.ExitCode(code)
	if head.ExitCode == report.ExitUsage && r.changed {
		head.ExitCode = report.ExitFailed // exit 2 promises that nothing was changed
	}
	switch {
	case head.ExitCode == report.ExitReboot:
		head.Outcome = report.RunRebootRequired
	case head.ExitCode == report.ExitInterrupted:
		head.Outcome = report.RunInterrupted
	case head.ExitCode == report.ExitUsage, code == pluginv1.CodeUnsupported.String() && !r.changed:
		head.Outcome = report.RunInvalid
	default:
		head.Outcome = report.RunFailed
	}
}

// success is the exit code of a run without errors: a plan that has something to do says so.
func (r *runner) success() int {
	if r.o.Mode != ModePlan {
		return report.ExitOK
	}
	if _, due := r.dueReboot(); due {
		return report.ExitDiffers
	}
	if slices.ContainsFunc(r.progress.results, func(res result) bool { return !res.settled || res.changed() }) {
		return report.ExitDiffers
	}
	return report.ExitOK
}

// complete says whether the run got to the end of its stream.
func (r *runner) complete() bool {
	return !slices.ContainsFunc(r.progress.results, func(res result) bool {
		return !res.settled || res.outcome == report.Failed || res.outcome == report.Skipped
	})
}

// endResume settles how a run that has not succeeded is continued.
func (r *runner) endResume(ctx context.Context) error {
	head := &r.progress.head
	switch {
	case r.with.Resume == nil || head.ExitCode == report.ExitOK:
		return nil
	case head.ExitCode == report.ExitReboot && r.o.Reboot:
		head.Resume = report.ResumeAtBoot
		return nil
	}
	var err error
	if head.Resume, err = r.with.Resume.End(ctx, head.Outcome, r.complete()); err != nil {
		return &ending{stateProblem(err)}
	}
	return nil
}

// succeed ends what was kept over reboots, and writes the sentinel after a live run of all phases that left nothing.
func (r *runner) succeed(ctx context.Context) error {
	if r.with.Resume != nil {
		if _, err := r.with.Resume.End(ctx, report.RunSucceeded, true); err != nil {
			return &ending{stateProblem(err)}
		}
	}
	if r.with.Reboots != nil {
		if err := r.with.Reboots.Forget(); err != nil {
			return &ending{stateProblem(err)}
		}
	}
	if r.with.Sentinel == nil || r.o.Phase != pluginv1.PhaseUnspecified {
		return nil
	}
	if slices.ContainsFunc(r.progress.results, func(res result) bool { return res.outcome == report.Deferred }) {
		return nil
	}
	if err := r.with.Sentinel.Write(); err != nil {
		return &ending{stateProblem(fmt.Errorf("write the sentinel: %w", err))}
	}
	return nil
}
