package machinetest

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/machineadm/machineadm/sdk/machine"
)

// Services is an in-memory service manager. Several goroutines may use it.
type Services struct {
	// Failures has errors by "action unit", such as "restart chrony.service" or "enable chrony.service". Set it before
	// use.
	Failures map[string]error

	mutex  sync.Mutex
	units  map[string]machine.ServiceState
	calls  []string
	starts int
}

// NewServices returns a manager without units.
func NewServices() *Services {
	return &Services{Failures: map[string]error{}, units: map[string]machine.ServiceState{}}
}

// Put installs a unit, or replaces its state.
func (s *Services) Put(unit string, state machine.ServiceState) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	state.Exists = true
	s.units[full(unit)] = state
}

// Calls returns the actions so far, such as "restart chrony.service", in order.
func (s *Services) Calls() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]string(nil), s.calls...)
}

// State implements machine.Services.
func (s *Services) State(_ context.Context, unit string) (machine.ServiceState, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	state := s.units[full(unit)]
	if state.Exists && state.ID == "" {
		state.ID, state.Names = full(unit), []string{full(unit)}
	}
	return state, nil
}

// States implements machine.Services.
func (s *Services) States(ctx context.Context, units ...string) ([]machine.ServiceState, error) {
	var states []machine.ServiceState
	for _, unit := range units {
		state, err := s.State(ctx, unit)
		if err != nil {
			return nil, err
		}
		states = append(states, state)
	}
	return states, nil
}

// SetEnabled implements machine.Services.
func (s *Services) SetEnabled(_ context.Context, unit string, enabled bool) error {
	action := "disable"
	if enabled {
		action = "enable"
	}
	return s.change(action, unit, func(state *machine.ServiceState) {
		state.Enabled, state.FileState = enabled, action+"d"
	})
}

// Do implements machine.Services. A start gives the unit a new InvocationID and MainPID.
func (s *Services) Do(_ context.Context, unit string, a machine.Action) error {
	return s.change(a.String(), unit, func(state *machine.ServiceState) {
		switch {
		case a == machine.Stop:
			state.Active, state.Sub, state.MainPID, state.InvocationID = "inactive", "dead", 0, ""
		case a == machine.Restart, a == machine.Start && state.Active != "active":
			s.starts++
			state.Active, state.Sub = "active", "running"
			state.MainPID, state.InvocationID = 1000+s.starts, fmt.Sprintf("%032x", s.starts)
		}
	})
}

// DaemonReload implements machine.Services.
func (s *Services) DaemonReload(context.Context) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.calls = append(s.calls, "daemon-reload")
	return s.Failures["daemon-reload"]
}

func (s *Services) change(action, unit string, change func(*machine.ServiceState)) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	unit = full(unit)
	call := action + " " + unit
	s.calls = append(s.calls, call)
	err := s.Failures[call]
	state, ok := s.units[unit]
	switch {
	case err != nil:
	case !ok:
		err = fmt.Errorf("the unit is not installed")
	case state.Masked && action != "stop" && action != "disable":
		err = fmt.Errorf("the unit is masked")
	default:
		change(&state)
		s.units[unit] = state
		return nil
	}
	return &machine.ServiceError{Unit: unit, Action: action, Hint: "journalctl -u " + unit, Err: err}
}

func full(unit string) string {
	if strings.Contains(unit, ".") {
		return unit
	}
	return unit + ".service"
}
