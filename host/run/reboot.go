package run

import (
	"context"
	"fmt"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// begin is passed once everything is planned and before the first change.
func (r *run) begin(ctx context.Context) error {
	if r.with.Resume == nil {
		return nil
	}
	due, err := r.with.Resume.Due()
	if err != nil {
		return stateFailure(err)
	}
	if due { // what comes next must not be done before it
		r.rebootDue = true
		return r.rebootFailure("", "an earlier run of this stream asked for a reboot, and the machine has not rebooted since")
	}
	if err := r.with.Resume.Begin(ctx); err != nil {
		return stateFailure(err)
	}
	return nil
}

// rebootFailure ends a run that the machine must reboot for.
func (r *run) rebootFailure(document, message string) *failure {
	hint := "reboot, then run the same command again"
	if r.o.Reboot || r.rebootDue {
		hint = "wait: the run goes on by itself after the reboot"
	}
	return &failure{exit: report.ExitReboot, err: report.Error{
		Code: report.CodeReboot, Document: document, Message: message, Hint: hint,
	}}
}

// rebootRequired settles a document that asked for a reboot before the next one.
func (r *run) rebootRequired(it *item) error {
	it.out.Outcome = report.RebootRequired
	return r.rebootFailure(label(it.doc.Kind, it.doc.Name), "the machine must reboot before the next document")
}

// wantedReboot is the reboot that some change asked for and that is still due once every document is done.
func (r *run) wantedReboot() error {
	for _, it := range r.items {
		if it.asked != pluginv1.RebootNone {
			return r.rebootFailure(label(it.doc.Kind, it.doc.Name), "every document is done; the machine must reboot")
		}
	}
	return nil
}

// prepareReboot counts the reboot that is due and has the next boot go on with the run, both durably, before it
// happens: a stream that asks for ever must not reboot for ever, and one that lies in /run would be lost.
func (r *run) prepareReboot(ctx context.Context) error {
	if !r.o.Reboot || r.rebootDue {
		return nil
	}
	if r.with.Reboots != nil {
		n, err := r.with.Reboots.CountReboot(r.report.Generation)
		if err != nil {
			return stateFailure(fmt.Errorf("count the reboot: %w", err))
		}
		if n > MaxReboots {
			return tooManyReboots(n)
		}
	}
	if r.with.Resume == nil {
		return nil
	}
	if err := r.with.Resume.Keep(ctx); err != nil {
		f := stateFailure(err)
		f.err.Hint = "see that the directory in the message is writable and not full, then run again; or run without --reboot, and reboot by hand"
		return f
	}
	return nil
}

func tooManyReboots(n int) *failure {
	return &failure{exit: report.ExitDeadline, err: report.Error{
		Code: report.CodeReboot, Message: fmt.Sprintf("the stream asks for reboot %d; at most %d are made", n, MaxReboots),
		Hint: "see in the report which change asks each time; a run that succeeds, also one without --reboot, starts the count again",
	}}
}

// endResume settles how a run that has not succeeded goes on, and tells it in the report.
func (r *run) endResume(ctx context.Context) error {
	switch {
	case r.with.Resume == nil || r.report.ExitCode == report.ExitOK:
		return nil
	case r.report.ExitCode == report.ExitReboot:
		if r.o.Reboot || r.rebootDue {
			r.report.Resume = report.ResumeAtBoot
		}
		return nil
	}
	var err error
	if r.report.Resume, err = r.with.Resume.End(ctx, r.report.Outcome); err != nil {
		return stateFailure(err)
	}
	return nil
}

// forgetResume leaves nothing to go on with: the run has succeeded.
func (r *run) forgetResume(ctx context.Context) error {
	if r.with.Resume == nil {
		return nil
	}
	if _, err := r.with.Resume.End(ctx, report.RunSucceeded); err != nil {
		return stateFailure(err)
	}
	return nil
}
