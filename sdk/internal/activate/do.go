package activate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/machineadm/machineadm/sdk/internal/fault"
	"github.com/machineadm/machineadm/sdk/internal/files"
	"github.com/machineadm/machineadm/sdk/internal/units"
)

func (a *activator) do(ctx context.Context, p Progress) error {
	desired, err := a.digest()
	if err != nil {
		return err
	}
	o, err := a.observe(ctx, nil)
	if err != nil {
		return err
	}
	if o.record != nil && o.record.Desired != desired {
		p.Report("rolling back the interrupted activation of another configuration")
		outcome, err := a.rollBack(ctx, o.record)
		if err != nil {
			return a.notRolledBack(ctx, err, nil)
		}
		p.Report(outcome)
		if o, err = a.observe(ctx, nil); err != nil {
			return err
		}
	}
	if o.record == nil {
		if o.differ == 0 && len(a.switches(o)) == 0 {
			return a.withoutRestart(ctx, p, o)
		}
		if o.differ > 0 {
			if err := a.check(ctx, p); err != nil {
				return err
			}
		}
		if o.record, err = a.begin(desired, o); err != nil {
			return err
		}
	}
	if cause := a.activate(ctx, p, o); cause != nil {
		return a.fail(ctx, p, o.record, cause)
	}
	return o.record.delete(a.store)
}

// withoutRestart writes companions, and starts the daemon where it does not run.
func (a *activator) withoutRestart(ctx context.Context, p Progress, o observation) error {
	var err error
	for i, part := range o.items {
		if err == nil && !o.have[i].Matches(o.want[i]) {
			err = a.files.Put(part.path, o.want[i])
		}
	}
	if err == nil && units.Down(o.unit) {
		p.Report("starting " + a.Unit)
		if err = a.reload(ctx, nil); err == nil {
			err = a.restart(ctx)
		}
	}
	if err == nil {
		err = a.awaitHealth(ctx, p)
	}
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	return a.failed(fmt.Sprintf("%s is not healthy with its configuration: %s", a.Unit, fault.Message(err)), err)
}

// check runs the daemon's checker on candidates of the files, and removes them and the directories that they needed. After a kill the host removes
// candidates, because they lie beside files that the document claims.
func (a *activator) check(ctx context.Context, p Progress) error {
	if a.Check == nil {
		return nil
	}
	p.Report("checking the new configuration of " + a.Unit)
	candidates, missing := map[string]string{}, a.missingDirectories(a.Files)
	var failed, refused error
	for _, spec := range a.Files {
		if spec.Want.Exists && failed == nil {
			candidates[spec.Path] = candidate(spec.Path)
			failed = a.files.Put(candidate(spec.Path), spec.Want)
		}
	}
	if failed == nil {
		refused = a.Check(ctx, a.machine, candidates)
	}
	for _, name := range candidates {
		failed = errors.Join(failed, a.files.Put(name, files.State{}))
	}
	failed = errors.Join(failed, a.removeEmpty(missing))
	if failed != nil {
		return fmt.Errorf("write and remove candidates of the configuration of %s: %w", a.Unit, failed)
	}
	if refused == nil || ctx.Err() != nil {
		return errors.Join(refused, ctx.Err())
	}
	if known, ok := fault.Known(refused); ok {
		return known
	}
	return a.failed(fmt.Sprintf("the check of the new configuration of %s failed, nothing was changed: %s",
		a.Unit, fault.Message(refused)), refused)
}

// begin saves the record.
func (a *activator) begin(desired string, o observation) (*record, error) {
	r := &record{
		Version: recordVersion, Unit: a.Unit, Desired: desired, Ran: !units.Down(o.unit), Invocation: o.unit.InvocationID,
		Kept: o.differ == 0, Disabled: a.Enable && !o.unit.Enabled,
	}
	for i, part := range o.items {
		r.Old = append(r.Old, oldFile{Path: part.path, Version: o.have[i]})
	}
	r.Missing = a.missingDirectories(slices.Concat(o.off, a.specs()))
	return r, r.save(a.store)
}

// missingDirectories returns the directories that the files require, each before its contents.
func (a *activator) missingDirectories(specs []files.Spec) []string {
	var missing []string
	for _, spec := range specs {
		directory := filepath.Dir(spec.Path)
		for spec.Want.Exists && !slices.Contains(missing, directory) {
			if _, err := a.files.Lstat(directory); !errors.Is(err, fs.ErrNotExist) {
				break
			}
			missing = append(missing, directory)
			directory = filepath.Dir(directory)
		}
	}
	slices.Sort(missing)
	return missing
}

// activate stops the units of Conflicts, swaps the files and restarts the daemon, until it is healthy.
func (a *activator) activate(ctx context.Context, p Progress, o observation) error {
	r := o.record
	if err := a.stopOthers(ctx, p, o); err != nil {
		return err
	}
	if err := a.swap(ctx, p, o); err != nil {
		return err
	}
	if err := a.reload(ctx, r); err != nil {
		return err
	}
	state, err := a.services.State(ctx, a.Unit)
	if err != nil {
		return err
	}
	if !r.Kept && state.InvocationID == r.Invocation || units.Down(state) {
		p.Report("restarting " + a.Unit)
		if err := a.restart(ctx); err != nil {
			return err
		}
	}
	if err := a.awaitHealth(ctx, p); err != nil {
		return err
	}
	return a.enable(ctx, p)
}

// swap writes every file that differs, and records the invocation that cannot have read them all.
func (a *activator) swap(ctx context.Context, p Progress, o observation) error {
	r, begun := o.record, false
	for _, part := range o.items {
		have, want, err := part.observe(a.files)
		if err != nil {
			return err
		}
		if have.Matches(want) {
			continue
		}
		if step := cmp.Or(part.step, "swapping the configuration of "+a.Unit); part.step != "" || !begun {
			p.Report(step)
			begun = part.step == ""
		}
		if err := a.swapAgain(r, part, have); err != nil {
			return err
		}
		if err := a.files.Put(part.path, want); err != nil {
			return err
		}
	}
	if r.Swapped {
		return nil
	}
	state, err := a.services.State(ctx, a.Unit)
	if err != nil {
		return err
	}
	// The invocation from before the swap has read none of the new files.
	r.Restarted = r.Restarted || state.InvocationID != r.Invocation
	r.Swapped, r.Invocation = true, state.InvocationID
	return r.save(a.store)
}

// swapAgain corrects the record of an earlier run before another file is swapped: an invocation since then may have read the
// old ones. A drop-in that appeared since then is not in it.
func (a *activator) swapAgain(r *record, part item, have files.State) error {
	known := slices.ContainsFunc(r.Old, func(old oldFile) bool { return old.Path == part.path })
	if known && !r.Swapped && (!r.Kept || part.loose) {
		return nil
	}
	if !known {
		r.Old = append(r.Old, oldFile{part.path, have})
	}
	r.Swapped, r.Kept = false, r.Kept && part.loose
	return r.save(a.store)
}
