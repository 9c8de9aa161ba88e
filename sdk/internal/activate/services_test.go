package activate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/machineadm/machineadm/sdk/internal/crashtest"
	"github.com/machineadm/machineadm/sdk/machine"
)

type fakeServices struct {
	h *fakeMachine
	f *crashtest.Point
}

func (s fakeServices) State(_ context.Context, unit string) (machine.ServiceState, error) {
	s.f.Effect()
	return s.stateOf(unit), nil
}

func (s fakeServices) stateOf(unit string) machine.ServiceState {
	if state, ok := s.h.others[unit]; ok {
		if state.ID != unit && state.ID != "" {
			return s.stateOf(state.ID)
		}
		return state
	}
	state := machine.ServiceState{
		ID: "d.service", Names: []string{"alias-of-d.service", "d.service"}, Exists: true, Masked: s.h.masked, Enabled: s.h.enabled,
		Active: "inactive", InvocationID: fmt.Sprint(s.h.daemon.starts),
	}
	if s.h.daemon.active {
		state.Active = "active"
	}
	if s.h.shared {
		state.InvocationID = ""
	}
	if s.h.daemon.failed {
		state.Active = "failed"
	}
	return state
}

func (s fakeServices) States(_ context.Context, units ...string) ([]machine.ServiceState, error) {
	s.f.Effect()
	var states []machine.ServiceState
	for _, unit := range units {
		states = append(states, s.stateOf(unit))
	}
	return states, nil
}

func (s fakeServices) Do(_ context.Context, unit string, a machine.Action) error {
	s.f.Effect()
	s.h.calls = append(s.h.calls, a.String()+" "+unit)
	if state, ok := s.h.others[unit]; ok {
		if a != machine.Stop && state.Masked {
			return &machine.ServiceError{Unit: unit, Action: a.String(), Err: errors.New("it is masked")}
		}
		state.Active = map[bool]string{true: "inactive", false: "active"}[a == machine.Stop || s.h.off[offPath(unit)].Exists]
		s.h.others[unit] = state
		return nil
	}
	switch {
	case a != machine.Stop && s.h.off[offPath(unit)].Exists: // systemctl succeeds
		s.h.daemon.active = false
	case a == machine.Stop:
		s.h.daemon.active, s.h.daemon.failed = false, false
		s.h.daemon.stops++
	case s.h.masked:
		return &machine.CommandError{Name: "systemctl", ExitCode: 1, Stderr: "Unit d.service is masked."}
	case s.h.daemon.busy > 0:
		s.h.daemon.busy--
		return errors.New("start request repeated too quickly")
	default:
		s.h.start()
	}
	return nil
}

func (s fakeServices) SetEnabled(_ context.Context, unit string, enabled bool) error {
	s.f.Effect()
	s.h.calls = append(s.h.calls, map[bool]string{true: "enable ", false: "disable "}[enabled]+unit)
	state, ok := s.h.others[unit]
	switch {
	case ok:
		state.Enabled = enabled
		s.h.others[unit] = state
	case s.h.masked:
		return &machine.ServiceError{Unit: unit, Action: "enable", Err: errors.New("it is masked")}
	default:
		s.h.enabled = enabled
	}
	return nil
}

func (s fakeServices) DaemonReload(context.Context) error {
	s.f.Effect()
	s.h.daemon.reloads++
	s.h.calls = append(s.h.calls, "daemon-reload")
	s.h.off = maps.Clone(s.h.disk)
	return nil
}

type fakeEnvironments struct {
	h *fakeMachine
	f *crashtest.Point
}

func (s fakeEnvironments) Environment(string) ([]string, error) {
	s.f.Effect()
	return slices.Clone(s.h.environment), nil
}

func (s fakeEnvironments) SetEnvironment(unit string, entries []string) error {
	s.f.Effect()
	if s.h.full == environmentPath(unit) {
		return &machine.ServiceError{Unit: unit, Action: "set the environment of", Err: errors.New("no space left")}
	}
	s.h.environment = slices.Clone(entries)
	return nil
}
