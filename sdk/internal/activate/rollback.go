package activate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/sdk/internal/fault"
	"github.com/machineadm/machineadm/sdk/internal/files"
	"github.com/machineadm/machineadm/sdk/internal/units"
	"github.com/machineadm/machineadm/sdk/machine"
)

// fail rolls back and returns the outcome as an error. When the context has ended, the record stays for the next run.
func (a *activator) fail(ctx context.Context, p Progress, r *record, cause error) error {
	if ctx.Err() != nil {
		return a.interrupted(ctx)
	}
	p.Report("rolling back the configuration of " + a.Unit + ": " + fault.Message(cause))
	outcome, err := a.rollBack(ctx, r)
	if err != nil {
		return a.notRolledBack(ctx, err, cause)
	}
	return a.failed(fmt.Sprintf("the new configuration of %s did not take effect (%s); %s", a.Unit, fault.Message(cause), outcome), cause)
}

func (a *activator) interrupted(ctx context.Context) error {
	return fmt.Errorf("the activation of %s was interrupted, the next run finishes it: %w", a.Unit, ctx.Err())
}

func (a *activator) notRolledBack(ctx context.Context, err, cause error) error {
	if ctx.Err() != nil {
		return a.interrupted(ctx)
	}
	why := ""
	if cause != nil {
		why = " after the new one did not take effect (" + fault.Message(cause) + ")"
	}
	return a.failed(fmt.Sprintf("the old configuration of %s could not be restored%s: %s; "+
		"the machine is between two configurations, the next run tries again", a.Unit, why, fault.Message(err)), errors.Join(err, cause))
}

// rollBack restores the state from before the record, deletes the record and returns the outcome in words. After an error
// the record remains.
func (a *activator) rollBack(ctx context.Context, r *record) (string, error) {
	for _, old := range r.Old {
		have, err := a.files.Read(old.Path)
		if err == nil && !have.Matches(old.Version) {
			err = a.files.Put(old.Path, old.Version)
		}
		if err != nil {
			return "", err
		}
	}
	if err := a.removeEmpty(r.Missing); err != nil {
		return "", err
	}
	if err := a.reload(ctx, r); err != nil {
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
	outcome, err := a.resume(ctx, r, state)
	if err != nil {
		return "", err
	}
	others, err := a.startOthers(ctx, r)
	if err != nil {
		return "", err
	}
	return outcome + others, r.delete(a.store)
}

// removeEmpty removes the directories that were created for the files, because to some daemons an empty one means
// something. One that holds files of others stays.
func (a *activator) removeEmpty(directories []string) error {
	for _, directory := range slices.Backward(directories) {
		info, err := a.files.Lstat(directory)
		if err == nil && info.Mode.IsDir() {
			err = a.files.Put(directory, files.State{})
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) { // ErrExist: not empty
			return err
		}
	}
	return nil
}

// resume restores the former state of the unit. A daemon that does not start again is no error, but part of the outcome.
func (a *activator) resume(ctx context.Context, r *record, state machine.ServiceState) (string, error) {
	const restored = "the old configuration was restored, "
	switch {
	case !r.Ran:
		if !units.Ended(state) {
			if err := a.services.Do(ctx, a.Unit, machine.Stop); err != nil {
				return "", err
			}
		}
		return restored + "and " + a.Unit + " does not run, as before", nil
	case !r.Restarted && sameInvocation(state, r.Invocation) && !units.Down(state):
		return restored + "and " + a.Unit + " was not restarted", nil
	}
	err := a.restartOld(ctx)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err == nil {
		return restored + "and " + a.Unit + " runs with it", nil
	}
	now, queryErr := a.services.State(ctx, a.Unit)
	if queryErr == nil && units.Up(now) && sameInvocation(now, state.InvocationID) { // such as a unit that is masked while it runs
		return restored + "but " + a.Unit + " could not be restarted with it and still runs as it was (" + fault.Message(err) + ")", nil
	}
	return restored + "but " + a.Unit + neither + fault.Message(err) + ")", nil
}

// neither is in the outcome when the unit runs with no configuration, the cause of which is elsewhere: a full disk, say.
const neither = " does not run with it either ("

// sameInvocation reports whether the unit has certainly not been restarted since it had this InvocationID.
func sameInvocation(state machine.ServiceState, id string) bool {
	return id != "" && state.InvocationID == id
}

func (a *activator) failed(message string, cause error) error {
	hint := "correct the configuration, then run again; "
	if strings.Contains(message, neither) {
		hint = "look for the cause elsewhere than in the new configuration, then run again; "
	}
	return fault.Caused(message, hint+units.LogHint(a.machine, a.Unit), cause)
}
