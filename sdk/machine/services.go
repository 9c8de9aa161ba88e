package machine

import (
	"context"
	"fmt"
)

// ServiceState is the state of a unit. An image has only ID, Names, Exists, Masked, Enabled, FileState and Fragment.
type ServiceState struct {
	// ID is the unit's own name, also where the query was for an alias.
	ID string
	// Names are all names of the unit, including ID.
	Names []string
	// Exists reports that the unit is installed.
	Exists bool
	// Masked reports that the unit cannot be started (Windows: start type disabled).
	Masked bool
	// Enabled reports that the unit starts at boot and has all links of its [Install] section.
	Enabled bool
	// FileState is the output of systemctl is-enabled, such as "enabled", "static" or "alias". Of a Windows service it is
	// "automatic", "manual" or "disabled".
	FileState string
	// NeedReload reports that files of the unit changed since the manager read them, by their modification times.
	NeedReload bool
	// Active and Sub are the states of systemd, such as "active" and "running", also for Windows services.
	Active, Sub string
	// InvocationID changes with every start. On Windows it consists of the process and its start time; it is empty for a
	// service that can share its process with others, because that process survives a restart of the service.
	InvocationID string
	// MainPID is the service's main process, 0 when there is none.
	MainPID int
	// Unmet is the condition of the unit, such as ConditionVirtualization=!container, because of which systemd skipped its last start and
	// would skip the next one: none that a file decides.
	Unmet string
	// Fragment is the unit file, or the program of a Windows service.
	Fragment string
	// Command is the command line of the service with all drop-ins. systemd does not distinguish blanks within an argument
	// from those between two. Windows: see Fragment.
	Command []string
	// Environment has the assignments of the unit itself (Environment=).
	Environment []string
}

// Action is an operation on a service that exists.
type Action int

// The actions. Restart also starts a stopped service. Reload makes the service read its configuration again.
const (
	Start Action = iota + 1
	Stop
	Restart
	Reload
)

// String returns the command of systemctl(1).
func (a Action) String() string {
	if a < Start || a > Reload {
		return fmt.Sprintf("action %d", int(a))
	}
	return []string{"start", "stop", "restart", "reload"}[a-Start]
}

// Services is the service manager. A unit is named as for systemctl(1): without suffix it is a .service. On Windows it is the
// service's key name. Errors name the unit; a failed operation is a *ServiceError.
type Services interface {
	// State describes a unit. One that is not installed is no error: Exists is false. In an image an instance of a template is ErrUnsupported.
	State(ctx context.Context, unit string) (ServiceState, error)
	// States describes several units at once, in their order.
	States(ctx context.Context, units ...string) ([]ServiceState, error)
	// SetEnabled enables or disables the start at boot. In an image it creates or removes the links of the unit's
	// [Install] section. After success State returns the same value.
	SetEnabled(ctx context.Context, unit string, enabled bool) error
	// Do performs an action and waits for its end; ErrOffline in an image.
	Do(ctx context.Context, unit string, a Action) error
	// DaemonReload makes the manager read its unit files again; ErrOffline in an image, ErrUnsupported on Windows.
	DaemonReload(ctx context.Context) error
}

// statesOf queries one unit after the other.
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

// enabling is the action of SetEnabled.
func enabling(enabled bool) string {
	if enabled {
		return "enable"
	}
	return "disable"
}

// ServiceError is a failed operation on a service.
type ServiceError struct {
	// Unit is the unit, and Action the operation, such as "restart".
	Unit, Action string
	// Hint says where an administrator finds the reason.
	Hint string
	// Err is the failure itself.
	Err error
}

// Error returns the unit, the operation, the failure and the hint.
func (e *ServiceError) Error() string {
	text := fmt.Sprintf("%s %s: %v", e.Action, e.Unit, e.Err)
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

func (e *ServiceError) Unwrap() error { return e.Err }
