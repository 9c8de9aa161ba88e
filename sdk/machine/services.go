package machine

import (
	"context"
	"fmt"
)

// ServiceState is what the service manager knows of a unit. In an image only ID, Names, Exists, Masked, Enabled, FileState,
// StartsAtBoot and Fragment can be known.
type ServiceState struct {
	// ID is the unit's own name, where it was asked for by an alias.
	ID string
	// Names are all names of the unit, ID among them.
	Names []string
	// Exists says that the unit is installed.
	Exists bool
	// Masked says that it cannot be started by any means (Windows: start type disabled).
	Masked bool
	// Enabled says that it is started at boot, with everything that its installation section asks for in place.
	Enabled bool
	// FileState is what systemctl(1) says by is-enabled, such as "enabled", "static" or "alias". Of a Windows service it is
	// "automatic", "manual" or "disabled".
	FileState string
	// StartsAtBoot says that it is enabled, or that a unit which is loaded wants or requires it, as is usual for static
	// ones. In an image it says no more than Enabled.
	StartsAtBoot bool
	// NeedReload says that files of the unit changed since the manager read them. systemd goes by their modification times.
	NeedReload bool
	// Active and Sub are systemd's words, such as "active" and "running". Windows services are described by the same.
	Active, Sub string
	// InvocationID changes with every start. On Windows it is made of the process and its start time.
	InvocationID string
	// MainPID is the service's main process, 0 when there is none.
	MainPID int
	// Fragment is the unit file, or the program of a Windows service.
	Fragment string
	// Command is what the service starts, with its arguments, all drop-ins read. systemd tells no blanks within an
	// argument from those between two. Of a Windows service see Fragment.
	Command []string
	// Environment are the assignments that the unit itself makes (Environment=).
	Environment []string
}

// Action is what can be done to a service that exists.
type Action int

// The actions. Restart also starts what is not running. Reload asks the service to read its configuration again.
const (
	Start Action = iota + 1
	Stop
	Restart
	Reload
)

// String is the action as systemctl(1) calls it.
func (a Action) String() string {
	switch a {
	case Start:
		return "start"
	case Stop:
		return "stop"
	case Restart:
		return "restart"
	case Reload:
		return "reload"
	default:
		return fmt.Sprintf("action %d", int(a))
	}
}

// Services is the service manager. A unit is named as on the command line of systemctl(1): without suffix it is a
// .service. On Windows it is the service's key name.
//
// Errors name the unit; those of something that was tried and failed are a *ServiceError.
type Services interface {
	// State describes a unit. One that is not installed is no error: Exists is false.
	State(ctx context.Context, unit string) (ServiceState, error)
	// States describes several units at once, in their order.
	States(ctx context.Context, units ...string) ([]ServiceState, error)
	// SetEnabled has the unit started at boot, or not. In an image it makes and removes the links that the
	// installation section of the unit asks for. Success means that State will say so.
	SetEnabled(ctx context.Context, unit string, enabled bool) error
	// Do acts on the running system and waits until it is done; ErrOffline in an image.
	Do(ctx context.Context, unit string, a Action) error
	// DaemonReload has the manager read its unit files again; ErrOffline in an image, ErrUnsupported on Windows.
	DaemonReload(ctx context.Context) error
}

// statesOf asks for one unit after the other.
func statesOf(ctx context.Context, s Services, units []string) ([]ServiceState, error) {
	states := make([]ServiceState, 0, len(units))
	for _, unit := range units {
		state, err := s.State(ctx, unit)
		if err != nil {
			return nil, err
		}
		states = append(states, state)
	}
	return states, nil
}

// ServiceError is something that was asked of a service and failed.
type ServiceError struct {
	// Unit is the unit, and Action what was asked of it, as in "restart".
	Unit, Action string
	// Hint says where an administrator finds the reason.
	Hint string
	// Err is the failure itself.
	Err error
}

// Error names the unit, what was asked and where to look.
func (e *ServiceError) Error() string {
	text := fmt.Sprintf("%s %s: %v", e.Action, e.Unit, e.Err)
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

func (e *ServiceError) Unwrap() error { return e.Err }
