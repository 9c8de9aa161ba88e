package sdk

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/machineadm/machineadm/sdk/machine"
)

// other is a unit of Instead.
type other struct {
	name  string // its own, also where Instead has an alias
	state machine.ServiceState
}

// runs is also true for a unit that is masked, or whose package was removed, while it runs.
func (o other) runs() bool { return o.state.Active != "" && !ended(o.state) }

func atBoot(s machine.ServiceState) bool { return !s.Masked && (s.Enabled || s.StartsAtBoot) }

// units returns the state of the unit and of those of Instead, each once. It queries those that seen lacks.
func (a *activator) units(ctx context.Context, seen map[string]machine.ServiceState) (machine.ServiceState, []other, error) {
	names := append([]string{a.Unit}, a.Instead...)
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, ok := seen[name]; return ok })
	states := map[string]machine.ServiceState{}
	maps.Copy(states, seen)
	if len(missing) > 0 {
		queried, err := a.services.States(ctx, missing...)
		if err != nil {
			return machine.ServiceState{}, nil, err
		}
		for i, name := range missing {
			states[name] = queried[i]
		}
	}
	var others []other
	done := []string{cmp.Or(states[a.Unit].ID, a.Unit)}
	for _, name := range a.Instead {
		if id := cmp.Or(states[name].ID, name); !slices.Contains(done, id) {
			others, done = append(others, other{id, states[name]}), append(done, id)
		}
	}
	return states[a.Unit], others, nil
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

// replaceOthers stops and disables the units of Instead.
func (a *activator) replaceOthers(ctx context.Context, p Progress) error {
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
			if err := a.disable(ctx, p, o.name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *activator) disable(ctx context.Context, p Progress, unit string) error {
	p.Report("disabling " + unit)
	if err := a.services.SetEnabled(ctx, unit, false); err != nil {
		return err
	}
	state, err := a.services.State(ctx, unit)
	if err == nil && atBoot(state) {
		err = Precondition(unit+" starts at boot though it is disabled: another unit wants it",
			"mask it, if no other program needs it: systemctl mask "+unit+"; then run again")
	}
	return err
}

// enable enables the unit, where Enable asks for it.
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

// restoreOthers restores the former state of the units of Instead and returns the outcome in words. A unit that does not
// start again is no error.
func (a *activator) restoreOthers(ctx context.Context, r *record) (string, error) {
	outcome := ""
	for _, was := range slices.Backward(r.Replaced) {
		state, err := a.services.State(ctx, was.Unit)
		if err != nil {
			return "", err
		}
		if was.AtBoot && state.Exists && !state.Masked && !atBoot(state) {
			if err := a.services.SetEnabled(ctx, was.Unit, true); err != nil {
				outcome += ", but " + was.Unit + " could not be enabled again (" + messageOf(err) + ")"
			}
		}
		if was.Ran && down(state) {
			if err := start(ctx, a.machine, a.services, was.Unit); err != nil {
				outcome += ", but " + was.Unit + " could not be started again (" + messageOf(err) + ")"
			} else {
				outcome += ", and " + was.Unit + " runs again"
			}
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	return outcome, nil
}
