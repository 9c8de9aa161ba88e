package sdk

import (
	"context"
	"strconv"

	"github.com/machineadm/machineadm/sdk/internal/units"
	"github.com/machineadm/machineadm/sdk/machine"
)

// ServiceSpec is the desired state of a service; nil leaves a field unmanaged.
type ServiceSpec struct {
	Enabled *bool // started at boot
	Running *bool
}

// on reports whether the unit must be startable.
func (s ServiceSpec) on() bool {
	return s.Enabled != nil && *s.Enabled || s.Running != nil && *s.Running
}

// ServiceState returns the changes that enable or disable a unit and start or stop it; none when it matches. A unit that is
// to be enabled or started and is not installed, or is masked, is a Precondition.
//
// In an image root the unit is enabled by links, and its start is left for first boot.
func ServiceState(ctx context.Context, m Machine, unit string, want ServiceSpec) ([]*Change, error) {
	state, err := m.Services.State(ctx, unit)
	if err != nil {
		return nil, err
	}
	if want.Enabled != nil {
		units.Claim(m, unit, state, "enabled", strconv.FormatBool(*want.Enabled))
	}
	if want.Running != nil {
		units.Claim(m, unit, state, "running", strconv.FormatBool(*want.Running))
	}
	if want.on() {
		if err := units.Usable(m, unit, state); err != nil {
			return nil, err
		}
	} else if !state.Exists {
		return nil, nil
	}
	var changes []*Change
	if want.Enabled != nil && *want.Enabled {
		if err := units.Enablable(unit, state); err != nil {
			return nil, err
		}
	}
	if want.Enabled != nil && state.Enabled != *want.Enabled {
		changes = append(changes, enablement(m, unit, *want.Enabled))
	}
	switch {
	case want.Running == nil:
	case *want.Running && (m.Offline() || units.Down(state)):
		changes = append(changes, &Change{
			ID: "start:" + unit, Summary: "start " + unit, NeedsLive: true,
			Do: func(ctx context.Context, _ Progress) error { return units.Start(ctx, m, m.Services, unit) },
		})
	case !*want.Running && !m.Offline() && !units.Ended(state):
		changes = append(changes, &Change{
			ID: "stop:" + unit, Summary: "stop " + unit, NeedsLive: true,
			Do: func(ctx context.Context, _ Progress) error { return m.Services.Do(ctx, unit, machine.Stop) },
		})
	}
	return changes, nil
}

func enablement(m Machine, unit string, enabled bool) *Change {
	action := map[bool]string{true: "enable", false: "disable"}[enabled]
	set := func(ctx context.Context) error { return m.Services.SetEnabled(ctx, unit, enabled) }
	change := (&Change{ID: action + ":" + unit, Summary: action + " " + unit}).ofFiles(m, set)
	if !m.Offline() { // the service manager makes the links, which a rehearsal must not
		change.rehearse = nil
	}
	return change
}
