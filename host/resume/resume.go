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

// Due says whether the machine has yet to reboot before this stream may go on: an earlier run of it asked for that in
// this very boot.
func (r *Resume) Due() (bool, error) {
	waiting, err := r.journal.Pending()
	if err != nil || waiting == nil {
		return false, err
	}
	return r.mine(waiting) && waiting.BootID != "" && waiting.BootID == r.run.BootID, nil
}

func (r *Resume) mine(waiting *journal.Pending) bool { return waiting.Generation == r.run.Generation }

// Begin is called before the first change. A run of another stream that waits is superseded: it would undo at the next
// boot what this one does.
func (r *Resume) Begin(ctx context.Context) error {
	waiting, err := r.journal.Pending()
	if err != nil || waiting == nil || r.mine(waiting) {
		return err
	}
	return r.forget(ctx)
}

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

// End is called when a run has ended other than for a reboot, and says how it can still go on. One that succeeded
// leaves nothing; one that was interrupted goes on at the next boot if it would have before; of one that failed the
// stream stays, if it was kept, for a person to go on with.
func (r *Resume) End(ctx context.Context, outcome report.Outcome) (report.Resume, error) {
	waiting, err := r.journal.Pending()
	if err != nil || waiting == nil || !r.mine(waiting) { // another stream's: this run ended before it began
		return "", err
	}
	switch {
	case outcome != report.RunSucceeded && outcome != report.RunInterrupted:
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
