package sdk

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/sdk/internal/fault"
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
		claimUnit(m, unit, state, "enabled", strconv.FormatBool(*want.Enabled))
	}
	if want.Running != nil {
		claimUnit(m, unit, state, "running", strconv.FormatBool(*want.Running))
	}
	if want.on() {
		if err := usable(m, unit, state); err != nil {
			return nil, err
		}
	} else if !state.Exists {
		return nil, nil
	}
	var changes []*Change
	if want.Enabled != nil && *want.Enabled {
		if err := enablable(unit, state); err != nil {
			return nil, err
		}
	}
	if want.Enabled != nil && state.Enabled != *want.Enabled {
		changes = append(changes, enablement(m, unit, *want.Enabled))
	}
	switch {
	case want.Running == nil:
	case *want.Running && (m.Offline() || down(state)):
		changes = append(changes, &Change{
			ID: "start:" + unit, Summary: "start " + unit, NeedsLive: true,
			Do: func(ctx context.Context, _ Progress) error { return start(ctx, m, m.Services, unit) },
		})
	case !*want.Running && !m.Offline() && !ended(state):
		changes = append(changes, &Change{
			ID: "stop:" + unit, Summary: "stop " + unit, NeedsLive: true,
			Do: func(ctx context.Context, _ Progress) error { return m.Services.Do(ctx, unit, machine.Stop) },
		})
	}
	return changes, nil
}

// claimUnit claims an attribute of a unit under the unit's own name, so that an alias is the same unit. Of a service of OpenRC,
// runit or s6, the id has the name of the manager.
func claimUnit(m Machine, unit string, state machine.ServiceState, attribute string, value ...string) {
	manager := "unit"
	if slices.Contains([]string{target.InitOpenRC, target.InitRunit, target.InitS6}, m.Target.Init) {
		manager = m.Target.Init
	}
	m.Claim(manager+":"+cmp.Or(state.ID, unit)+"#"+attribute, "", value...)
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

// start starts a unit and checks that it runs: a simple service counts as started before it has done anything.
func start(ctx context.Context, m Machine, services machine.Services, unit string) error {
	if err := explained(ctx, m, services, unit, services.Do(ctx, unit, machine.Start)); err != nil {
		return err
	}
	state, err := services.State(ctx, unit)
	if err != nil {
		return err
	}
	if down(state) {
		return Precondition(unit+" ended right after its start", logHint(m, unit))
	}
	return nil
}

// usable refuses a unit that cannot be started.
func usable(m Machine, unit string, state machine.ServiceState) error {
	switch {
	case !state.Exists:
		return Precondition(unit+" is not installed", "install the package that it comes with, then run again")
	case state.Masked && m.Target.OS == "windows":
		return Precondition("the service "+unit+" is disabled: it cannot be started",
			"find out why, then: Set-Service -StartupType Automatic "+unit)
	case state.Masked:
		return Precondition(unit+" is masked: it cannot be started", "find out why, then: systemctl unmask "+unit)
	case state.Unmet != "":
		return Precondition("systemd does not start "+unit+" on this machine: "+state.Unmet+" is not met",
			"use another service here, or reset the condition in a drop-in: systemctl edit "+unit)
	}
	return nil
}

// enablable refuses a unit that nothing can enable. An image refuses more when the plan rehearses the links.
func enablable(unit string, state machine.ServiceState) error {
	if state.Enabled || !slices.Contains([]string{"static", "generated", "transient"}, state.FileState) {
		return nil
	}
	return Precondition(unit+" cannot be enabled ("+state.FileState+"): its [Install] section does not say when to start it",
		"add the section in a unit of the same name in /etc/systemd/system, see systemctl cat "+unit+", then run again")
}

// explained returns the failure of a start, or that the unit was masked or removed meanwhile, if that is the cause.
func explained(ctx context.Context, m Machine, services machine.Services, unit string, failure error) error {
	if failure == nil || ctx.Err() != nil {
		return failure
	}
	state, err := services.State(ctx, unit)
	if err != nil {
		return failure // more specific than err
	}
	if refused := usable(m, unit, state); refused != nil {
		return WithDetail(refused, fault.Output(failure))
	}
	return failure
}

func logHint(m Machine, unit string) string {
	if m.Target.OS == "windows" {
		return "see the event logs System and Application"
	}
	return "see journalctl -u " + unit
}

// ended reports that the unit does not run and that nothing will start it.
func ended(s machine.ServiceState) bool { return s.Active == "inactive" || s.Active == "failed" }

// down reports that the unit does not run. One that is restarted repeatedly does not.
func down(s machine.ServiceState) bool { return ended(s) || strings.HasPrefix(s.Sub, "auto-restart") }

// up reports that the unit runs.
func up(s machine.ServiceState) bool {
	return slices.Contains([]string{"active", "reloading", "refreshing"}, s.Active)
}
