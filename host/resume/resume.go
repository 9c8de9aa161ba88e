// Package resume continues a run after a reboot: it saves the stream, which may lie in /run, and installs a unit or task
// that starts `machineadm apply --resume` at the next boot.
//
// Both are removed when the run ends. A failed run leaves the stream, for a manual resume, but nothing that starts at boot.
//
// NewReportStarter starts the command that sends the report of a run in the same way.
package resume

import (
	"context"
	"errors"
	"fmt"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/state"
)

// allPhases is the value of --phase that selects every document.
const allPhases = "all"

// Starter starts a command at every boot, or again and again, until it is removed. Its methods are idempotent.
type Starter interface {
	Install(ctx context.Context) error
	Remove(ctx context.Context) error
}

// Resume is a run that can continue after a reboot.
type Resume struct {
	store   *state.Store
	starter Starter
	run     state.Pending
}

// New returns the resume of a run; run is the complete record that Keep saves.
func New(store *state.Store, starter Starter, run state.Pending) *Resume {
	return &Resume{store: store, starter: starter, run: run}
}

// Keep saves the run before a reboot. After an error nothing is saved, and the caller must not reboot.
func (r *Resume) Keep(ctx context.Context) error {
	err := r.store.KeepPending(r.run)
	if err == nil {
		err = r.starter.Install(ctx)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("save the run for the time after the reboot: %w", err), r.forget(ctx))
	}
	return nil
}

// End cleans up after a run that ended without Keep, and returns how the pending run, if any, resumes. A successful run leaves
// nothing. An interrupted run, or one that waits for a reboot, resumes as before. A failed run leaves its saved stream for a
// manual resume. The pending run of another stream is dropped only if this run is complete, because at the next boot it
// would revert this run's changes.
func (r *Resume) End(ctx context.Context, outcome report.Outcome, complete bool) (report.Resume, error) {
	pending, err := r.store.Pending()
	if err != nil || pending == nil {
		return "", err
	}
	if pending.StreamDigest != r.run.StreamDigest {
		if complete {
			return "", r.forget(ctx)
		}
		return "", nil
	}
	switch {
	case outcome != report.RunSucceeded && outcome != report.RunInterrupted && outcome != report.RunRebootRequired:
		// The record first: a unit of the operating system stays, and starts a run only by the record.
		return report.ResumeByHand, errors.Join(r.store.RestPending(), r.starter.Remove(ctx))
	case outcome == report.RunSucceeded && (r.run.Phase == allPhases || r.run.Phase == pending.Phase):
		return "", r.forget(ctx)
	case pending.Resting: // interrupted, or only some phases of the pending run
		return report.ResumeByHand, nil
	default:
		return report.ResumeAtBoot, nil
	}
}

// Forget removes the pending run.
func Forget(ctx context.Context, store *state.Store, starter Starter) error {
	// The stream first: the unit does nothing without it.
	return errors.Join(store.ForgetPending(), starter.Remove(ctx))
}

func (r *Resume) forget(ctx context.Context) error { return Forget(ctx, r.store, r.starter) }
