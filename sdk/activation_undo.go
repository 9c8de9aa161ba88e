package sdk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/machineadm/machineadm/sdk/machine"
)

// fail puts the old configuration back and says how that ended. When the context is over there is no time for that:
// the record stays, and the next run goes on.
func (a *activator) fail(ctx context.Context, p Progress, r *record, cause error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("the activation of %s was interrupted, the next run finishes it: %w", a.Unit, err)
	}
	p.Report("putting the old configuration of " + a.Unit + " back: " + words(cause))
	end, err := a.undo(ctx, r)
	if err != nil {
		return a.notPutBack(ctx, err, cause)
	}
	return a.failed(fmt.Sprintf("the new configuration of %s did not take effect (%s); %s", a.Unit, words(cause), end), cause)
}

func (a *activator) notPutBack(ctx context.Context, err, cause error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("the activation of %s was interrupted, the next run finishes it: %w", a.Unit, ctx.Err())
	}
	why := ""
	if cause != nil {
		why = " after the new one did not take effect (" + words(cause) + ")"
	}
	return a.failed(fmt.Sprintf("the old configuration of %s could not be put back%s: %s; "+
		"the machine is between two configurations, the next run tries again", a.Unit, why, words(err)), errors.Join(err, cause))
}

// undo puts everything back to where it was before the record and forgets the record. It says how that ended; its
// error means that it did not, and that the record is kept.
func (a *activator) undo(ctx context.Context, r *record) (string, error) {
	for _, old := range r.Old {
		have, err := look(a.files, old.Path)
		if err != nil {
			return "", err
		}
		if have.is(old.Version) {
			continue
		}
		if err := a.files.put(old.Path, old.Version); err != nil {
			return "", err
		}
	}
	if err := a.removeEmpty(r.Missing); err != nil {
		return "", err
	}
	state, err := a.services.State(ctx, a.Unit)
	if err != nil {
		return "", err
	}
	if r.Disabled && state.Enabled {
		if err := a.services.SetEnabled(ctx, cmp.Or(state.ID, a.Unit), false); err != nil {
			return "", err
		}
	}
	end, err := a.resume(ctx, r, state)
	if err != nil {
		return "", err
	}
	others, err := a.turnOn(ctx, r)
	if err != nil {
		return "", err
	}
	return end + others, r.forget(a.memory)
}

// removeEmpty removes the directories that came with the files: to some daemons an empty one means something. One that
// holds files of others stays.
func (a *activator) removeEmpty(directories []string) error {
	for _, directory := range slices.Backward(directories) {
		info, err := a.files.Lstat(directory)
		if err == nil && info.Mode.IsDir() {
			err = a.files.put(directory, version{})
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) { // ErrExist: not empty
			return err
		}
	}
	return nil
}

// resume has the unit do again what it did before the record. A daemon that will not is no error: it is the end that
// is told.
func (a *activator) resume(ctx context.Context, r *record, state machine.ServiceState) (string, error) {
	switch {
	case !r.Ran:
		if !ended(state) {
			if err := a.services.Do(ctx, a.Unit, machine.Stop); err != nil {
				return "", err
			}
		}
		return "the old configuration is back, and " + a.Unit + " does not run, as before", nil
	case !r.Restarted && state.InvocationID == r.Invocation && !down(state):
		if a.hasUnitFiles(r) { // which systemd has read, when it was the restart that failed
			if err := a.services.DaemonReload(ctx); err != nil {
				return "", err
			}
		}
		return "the old configuration is back, and " + a.Unit + " was not restarted", nil
	}
	err := a.revive(ctx, r)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		now, unknown := a.services.State(ctx, a.Unit)
		if unknown == nil && up(now) && now.InvocationID == state.InvocationID { // as a unit that is masked while it runs
			return "the old configuration is back, but " + a.Unit + " could not be restarted with it and runs on as it was (" + words(err) + ")", nil
		}
		return "the old configuration is back, but " + a.Unit + " does not run with it either (" + words(err) + ")", nil
	}
	return "the old configuration is back, and " + a.Unit + " runs with it", nil
}

// failed is what an administrator has to look into. Its cause goes into words: a context's error in it would be taken
// for the caller's.
func (a *activator) failed(message string, cause error) error {
	_, hint := judge(cause)
	if known, ok := asContract(cause); ok {
		hint = known.Hint
	}
	if hint == "" {
		hint = "correct the configuration, then run again; " + whereItSays(a.machine, a.Unit)
	}
	return WithDetail(Precondition(message, hint), outputOf(cause))
}
