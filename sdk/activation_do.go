package sdk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

func (a *activator) do(ctx context.Context, p Progress) error {
	wish, err := a.digest()
	if err != nil {
		return err
	}
	s, err := a.look(ctx, nil)
	if err != nil {
		return err
	}
	if s.record != nil && s.record.Wish != wish {
		p.Report("undoing the interrupted activation of another configuration")
		end, err := a.undo(ctx, s.record)
		if err != nil {
			return a.notPutBack(ctx, err, nil)
		}
		p.Report(end)
		if s, err = a.look(ctx, nil); err != nil {
			return err
		}
	}
	if s.record == nil {
		if s.differ == 0 && len(a.switches(s)) == 0 {
			return a.asItIs(ctx, p, s)
		}
		if s.differ > 0 {
			if err := a.check(ctx, p); err != nil {
				return err
			}
		}
		if s.record, err = a.begin(wish, s); err != nil {
			return err
		}
	}
	cause := a.bringIn(ctx, p, s.record)
	if cause == nil {
		return s.record.forget(a.memory)
	}
	return a.fail(ctx, p, s.record, cause)
}

// asItIs is for a configuration that needs no restart.
func (a *activator) asItIs(ctx context.Context, p Progress, s sight) error {
	var err error
	for i, part := range a.items() { // companions
		if err == nil && !s.have[i].is(s.want[i]) {
			err = a.files.put(part.path, s.want[i])
		}
	}
	if err == nil && down(s.unit) {
		p.Report("starting " + a.Unit)
		err = a.restart(ctx, nil)
	}
	if err == nil {
		err = a.settle(ctx, p)
	}
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	return a.failed(fmt.Sprintf("%s does not run well with its configuration: %s", a.Unit, words(err)), err)
}

// check shows candidates of the files to the daemon's checker, and removes them, whatever it says. Those of a process
// that was killed are removed by the host: they lie beside files that the document claims.
func (a *activator) check(ctx context.Context, p Progress) error {
	if a.Check == nil {
		return nil
	}
	p.Report("checking the new configuration of " + a.Unit)
	candidates := map[string]string{}
	var failed, refused error
	for _, spec := range a.Files {
		if !spec.Absent && failed == nil {
			candidates[spec.Path] = candidate(spec.Path)
			failed = a.files.put(candidate(spec.Path), spec.version())
		}
	}
	if failed == nil {
		refused = a.Check(ctx, a.machine, candidates)
	}
	for _, name := range candidates {
		failed = errors.Join(failed, a.files.put(name, version{}))
	}
	if failed != nil {
		return fmt.Errorf("write and remove candidates of the configuration of %s: %w", a.Unit, failed)
	}
	if refused == nil || ctx.Err() != nil {
		return errors.Join(refused, ctx.Err())
	}
	if known, ok := asContract(refused); ok {
		return known
	}
	return a.failed(fmt.Sprintf("the check of the new configuration of %s failed, nothing was changed: %s",
		a.Unit, words(refused)), refused)
}

// begin makes the record, after which nothing is forgotten.
func (a *activator) begin(wish string, s sight) (*record, error) {
	r := &record{
		Version: recordVersion, Unit: a.Unit, Wish: wish, Ran: !down(s.unit), Invocation: s.unit.InvocationID,
		Kept: s.differ == 0, Disabled: a.Enable && !s.unit.Enabled, Replaced: replacedOf(s.others),
	}
	for i, part := range a.items() {
		if !s.have[i].Exists { // a link that leads nowhere could not be put back
			if _, err := a.files.Lstat(part.path); !errors.Is(err, fs.ErrNotExist) {
				return nil, errors.Join(err, Precondition(part.path+" is a link that leads nowhere", "remove it, then run again"))
			}
		}
		r.Old = append(r.Old, oldFile{Path: part.path, Version: s.have[i]})
	}
	r.Missing = a.missingDirectories()
	return r, r.save(a.memory)
}

// missingDirectories are those that the files bring with them, a directory before what is in it.
func (a *activator) missingDirectories() []string {
	var missing []string
	for _, spec := range a.specs() {
		directory := filepath.Dir(spec.Path)
		for !spec.Absent && !slices.Contains(missing, directory) {
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

// bringIn turns the units of Instead off, swaps the files and gets the daemon to run with them.
func (a *activator) bringIn(ctx context.Context, p Progress, r *record) error {
	if err := a.turnOff(ctx, p); err != nil {
		return err
	}
	if err := a.swap(ctx, p, r); err != nil {
		return err
	}
	state, err := a.services.State(ctx, a.Unit)
	if err != nil {
		return err
	}
	if !r.Kept && state.InvocationID == r.Invocation || down(state) {
		p.Report("restarting " + a.Unit)
		if err := a.restart(ctx, r); err != nil {
			return err
		}
	}
	if err := a.settle(ctx, p); err != nil {
		return err
	}
	return a.enable(ctx, p)
}

// swap makes every file new, and notes the invocation that cannot have read them all.
func (a *activator) swap(ctx context.Context, p Progress, r *record) error {
	begun := false
	for _, part := range a.items() {
		have, err := look(a.files, part.path)
		if err != nil {
			return err
		}
		want, err := part.want(have)
		if err != nil {
			return err
		}
		if have.is(want) {
			continue
		}
		if !begun {
			p.Report("swapping the configuration of " + a.Unit)
			if err := a.unswapped(r, part.loose); err != nil {
				return err
			}
			begun = true
		}
		if err := a.files.put(part.path, want); err != nil {
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
	// One that is still that of the beginning has read none of the new files.
	r.Restarted = r.Restarted || state.InvocationID != r.Invocation
	r.Swapped, r.Invocation = true, state.InvocationID
	return r.save(a.memory)
}

// unswapped takes back what an earlier run noted, when files are to be swapped a second time: an invocation that came
// up since may have read the old ones.
func (a *activator) unswapped(r *record, loose bool) error {
	if !r.Swapped && (!r.Kept || loose) {
		return nil
	}
	r.Swapped, r.Kept = false, r.Kept && loose
	return r.save(a.memory)
}
