// Package resume has a run go on by itself after a reboot that it asked for: it keeps the stream, which may have lain
// in /run, and has the next boot start `machineadm apply --resume`.
//
// What it makes is gone when the run has ended. A run that failed leaves the stream, so that a person can go on with
// it, but nothing that starts by itself.
package resume

import (
	"context"
	"errors"
	"fmt"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/journal"
)

// allPhases is what --phase says when it leaves nothing out.
const allPhases = "all"

// Starter has every boot start a command, or no more. Its methods can be repeated.
type Starter interface {
	Install(ctx context.Context) error
	Remove(ctx context.Context) error
}

// Resume is one run, as far as it must outlive a reboot.
type Resume struct {
	journal *journal.Journal
	starter Starter
	run     journal.Pending
}

// New is the resume of a run. Of the run everything is set that would be kept.
func New(j *journal.Journal, s Starter, run journal.Pending) *Resume {
	return &Resume{journal: j, starter: s, run: run}
}

func (r *Resume) mine(waiting *journal.Pending) bool { return waiting.Generation == r.run.Generation }

// Keep is called before a reboot. When it fails nothing is kept: the caller must not reboot.
func (r *Resume) Keep(ctx context.Context) error {
	err := r.journal.KeepPending(r.run)
	if err == nil {
		err = r.starter.Install(ctx)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("keep the run over the reboot: %w", err), r.forget(ctx))
	}
	return nil
}

// End is called when a run has ended without Keep, and says how it can be continued. One that succeeded leaves nothing; one
// that was interrupted, or that waits for a reboot, is continued at the next boot if it would have been before; of one that
// failed the stream stays, if it was kept, for a person to continue it. A run of another stream that waits is replaced only
// by a run that got to the end of its stream: it would undo at the next boot what this run has done.
func (r *Resume) End(ctx context.Context, outcome report.Outcome, complete bool) (report.Resume, error) {
	waiting, err := r.journal.Pending()
	if err != nil || waiting == nil {
		return "", err
	}
	if !r.mine(waiting) {
		if complete {
			return "", r.forget(ctx)
		}
		return "", nil
	}
	switch {
	case outcome != report.RunSucceeded && outcome != report.RunInterrupted && outcome != report.RunRebootRequired:
		// The journal first: a unit that the operating system ships is never removed, and starts by what it finds there.
		return report.ResumeByHand, errors.Join(r.journal.RestPending(), r.starter.Remove(ctx))
	case outcome == report.RunSucceeded && (r.run.Phase == allPhases || r.run.Phase == waiting.Phase):
		return "", r.forget(ctx)
	case waiting.Resting: // interrupted, or only a part of what waits
		return report.ResumeByHand, nil
	default:
		return report.ResumeAtBoot, nil
	}
}

// Forget leaves nothing to go on with.
func Forget(ctx context.Context, j *journal.Journal, s Starter) error {
	// The stream first: what starts at boot does nothing without it.
	return errors.Join(j.ForgetPending(), s.Remove(ctx))
}

func (r *Resume) forget(ctx context.Context) error { return Forget(ctx, r.journal, r.starter) }
