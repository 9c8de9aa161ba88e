package sdk

import (
	"cmp"
	"context"
	"slices"

	"github.com/machineadm/machineadm/sdk/machine"
)

// other is a unit of Instead.
type other struct {
	name  string // its own, where it was given by an alias
	state machine.ServiceState
}

// runs is also true for a unit that is masked, or whose package is gone, while it runs.
func (o other) runs() bool { return o.state.Active != "" && !ended(o.state) }

func atBoot(s machine.ServiceState) bool { return !s.Masked && (s.Enabled || s.StartsAtBoot) }

// units returns the state of the unit and of those of Instead, each once.
func (a *activator) units(ctx context.Context, seen map[string]machine.ServiceState) (machine.ServiceState, []other, error) {
	names := append([]string{a.Unit}, a.Instead...)
	var missing []string
	for _, name := range names {
		if _, ok := seen[name]; !ok {
			missing = append(missing, name)
		}
	}
	states := map[string]machine.ServiceState{}
	if len(missing) > 0 {
		asked, err := a.services.States(ctx, missing...)
		if err != nil {
			return machine.ServiceState{}, nil, err
		}
		for i, name := range missing {
			states[name] = asked[i]
		}
	}
	var own machine.ServiceState
	var others []other
	done := map[string]bool{}
	for i, name := range names {
		state, ok := states[name]
		if !ok {
			state = seen[name]
		}
		id := cmp.Or(state.ID, name)
		switch {
		case i == 0:
			own = state
		case !done[id]:
			others = append(others, other{id, state})
		}
		done[id] = true
	}
	return own, others, nil
}

// switches says what is missing of Instead and Enable.
func (a *activator) switches(s sight) []string {
	var all []string
	for _, o := range s.others {
		switch boot := atBoot(o.state); {
		case o.runs() && boot:
			all = append(all, "stop and disable "+o.name)
		case o.runs():
			all = append(all, "stop "+o.name)
		case boot:
			all = append(all, "disable "+o.name)
		}
	}
	if a.Enable && !s.unit.Enabled {
		all = append(all, "enable "+a.Unit)
	}
	return all
}

// inImage are the changes of an image: files and links.
func (a *activator) inImage(s sight) ([]*Change, error) {
	var changes []*Change
	for _, o := range s.others {
		if atBoot(o.state) {
			changes = append(changes, enablement(a.services, o.name, false))
		}
	}
	files, err := fileChanges(a.files, a.specs())
	changes = append(changes, files...)
	if a.Enable && s.unit.Exists && !s.unit.Enabled {
		changes = append(changes, enablement(a.services, cmp.Or(s.unit.ID, a.Unit), true))
	}
	return changes, err
}

func replacedOf(others []other) []replaced {
	var all []replaced
	for _, o := range others {
		if o.runs() || atBoot(o.state) {
			all = append(all, replaced{Unit: o.name, AtBoot: atBoot(o.state), Ran: !down(o.state) && o.runs()})
		}
	}
	return all
}

// turnOff stops the units of Instead and has them no longer started at boot.
func (a *activator) turnOff(ctx context.Context, p Progress) error {
	if len(a.Instead) == 0 {
		return nil
	}
	_, others, err := a.units(ctx, nil)
	if err != nil {
		return err
	}
	for _, o := range others {
		if o.runs() {
			p.Report("stopping " + o.name)
			if err := a.services.Do(ctx, o.name, machine.Stop); err != nil {
				return err
			}
		}
		if atBoot(o.state) {
			if err := a.keepOff(ctx, p, o.name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *activator) keepOff(ctx context.Context, p Progress, unit string) error {
	p.Report("disabling " + unit)
	if err := a.services.SetEnabled(ctx, unit, false); err != nil {
		return err
	}
	state, err := a.services.State(ctx, unit)
	if err != nil {
		return err
	}
	if atBoot(state) {
		return Precondition(unit+" starts at boot though it is disabled: another unit wants it",
			"mask it, if no other program needs it: systemctl mask "+unit+"; then run again")
	}
	return nil
}

// enable has the unit started at boot.
func (a *activator) enable(ctx context.Context, p Progress) error {
	if !a.Enable {
		return nil
	}
	state, err := a.services.State(ctx, a.Unit)
	if err != nil || state.Enabled {
		return err
	}
	p.Report("enabling " + a.Unit)
	err = a.services.SetEnabled(ctx, cmp.Or(state.ID, a.Unit), true)
	return explained(ctx, a.machine, a.services, a.Unit, err)
}

// turnOn gives the units of Instead back what they were before the record, and says how that ended. One that does not
// start any more is no error, as for the unit itself.
func (a *activator) turnOn(ctx context.Context, r *record) (string, error) {
	end := ""
	for _, was := range slices.Backward(r.Replaced) {
		state, err := a.services.State(ctx, was.Unit)
		if err != nil {
			return "", err
		}
		if was.AtBoot && state.Exists && !state.Masked && !atBoot(state) {
			if err := a.services.SetEnabled(ctx, was.Unit, true); err != nil {
				end += ", but " + was.Unit + " could not be enabled again (" + words(err) + ")"
			}
		}
		if was.Ran && down(state) {
			if err := start(ctx, a.machine, a.services, was.Unit); err != nil {
				end += ", but " + was.Unit + " could not be started again (" + words(err) + ")"
			} else {
				end += ", and " + was.Unit + " runs again"
			}
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	return end, nil
}
