package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"
)

// jobTimeout is how long a service may take to start or stop when ctx says nothing shorter.
const jobTimeout = 5 * time.Minute

// eventLog is where Windows keeps what a service says of itself.
const eventLog = "see the event log System, source Service Control Manager"

// windowsServices is the service control manager.
type windowsServices struct{}

func liveServices(Runner) Services { return windowsServices{} }

// imageServices refuses: an offline Windows image keeps its services in a registry hive that is not mounted.
func imageServices(*FS) Services { return unsupportedServices{} }

// with opens a service for the time of a call.
func with(name, action string, use func(*mgr.Service) error) (err error) {
	if name == "" || len(name) > 256 || strings.ContainsAny(name, "/\\\x00") {
		return fmt.Errorf("service %s: %w: not a service name", printable(name), fs.ErrInvalid)
	}
	defer func() {
		if err != nil {
			err = &ServiceError{Unit: name, Action: action, Hint: eventLog, Err: err}
		}
	}()
	manager, err := mgr.Connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, manager.Disconnect()) }()
	service, err := manager.OpenService(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.Close()) }()
	return use(service)
}

// State implements Services.
func (windowsServices) State(_ context.Context, unit string) (ServiceState, error) {
	var state ServiceState
	err := with(unit, "query", func(service *mgr.Service) error {
		config, err := service.Config()
		if err != nil {
			return err
		}
		status, err := service.Query()
		if err != nil {
			return err
		}
		state = ServiceState{
			ID: unit, Names: []string{unit}, FileState: startType(config.StartType), StartsAtBoot: config.StartType <= mgr.StartAutomatic,
			Exists: true, Masked: config.StartType == mgr.StartDisabled, Enabled: config.StartType == mgr.StartAutomatic,
			MainPID: int(status.ProcessId), Fragment: config.BinaryPathName,
		}
		state.Active, state.Sub = words(status.State)
		if status.ProcessId != 0 {
			state.InvocationID, err = identity(status.ProcessId)
		}
		return err
	})
	if errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST) {
		return ServiceState{}, nil
	}
	return state, err
}

// States implements Services.
func (s windowsServices) States(ctx context.Context, units ...string) ([]ServiceState, error) {
	return statesOf(ctx, s, units)
}

// startType is a start type as Set-Service calls it. Those below automatic are of drivers, which start with the kernel.
func startType(t uint32) string {
	switch t {
	case mgr.StartManual:
		return "manual"
	case mgr.StartDisabled:
		return "disabled"
	default:
		return "automatic"
	}
}

// words are those of systemd for the same.
func words(state svc.State) (active, sub string) {
	switch state {
	case svc.Running:
		return "active", "running"
	case svc.Paused:
		return "active", "paused"
	case svc.StartPending, svc.ContinuePending:
		return "activating", "start"
	case svc.StopPending, svc.PausePending:
		return "deactivating", "stop"
	default:
		return "inactive", "dead"
	}
}

// identity tells one run of a process from the next that gets its number.
func identity(pid uint32) (_ string, err error) {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return "", nil // It ended since.
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, windows.CloseHandle(process)) }()
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(process, &created, &exited, &kernel, &user); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d-%d", pid, created.Nanoseconds()), nil
}

// SetEnabled implements Services. What is not enabled can still be started by hand.
func (windowsServices) SetEnabled(_ context.Context, unit string, enabled bool) error {
	action, start := "disable", uint32(mgr.StartManual)
	if enabled {
		action, start = "enable", mgr.StartAutomatic
	}
	return with(unit, action, func(service *mgr.Service) error {
		config, err := service.Config()
		if err != nil || config.StartType == start || !enabled && config.StartType != mgr.StartAutomatic {
			return err
		}
		config.StartType = start
		return service.UpdateConfig(config)
	})
}

// Do implements Services.
func (windowsServices) Do(ctx context.Context, unit string, a Action) error {
	ctx, cancel := context.WithTimeoutCause(ctx, jobTimeout, ErrTimeout)
	defer cancel()
	return with(unit, a.String(), func(service *mgr.Service) error {
		switch a {
		case Start:
			return start(ctx, service)
		case Stop:
			return stop(ctx, service)
		case Restart:
			if err := stop(ctx, service); err != nil {
				return err
			}
			return start(ctx, service)
		case Reload:
			_, err := service.Control(svc.ParamChange)
			return err
		default:
			return fmt.Errorf("%w: %v", fs.ErrInvalid, a)
		}
	})
}

func start(ctx context.Context, service *mgr.Service) error {
	if err := service.Start(); err != nil && !errors.Is(err, windows.ERROR_SERVICE_ALREADY_RUNNING) {
		return err
	}
	return await(ctx, service, svc.Running)
}

func stop(ctx context.Context, service *mgr.Service) error {
	if _, err := service.Control(svc.Stop); err != nil && !errors.Is(err, windows.ERROR_SERVICE_NOT_ACTIVE) {
		return err
	}
	return await(ctx, service, svc.Stopped)
}

// await asks until the service is where it should be; the manager has no way to be told that all services support.
func await(ctx context.Context, service *mgr.Service, wanted svc.State) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		status, err := service.Query()
		switch {
		case err != nil:
			return err
		case status.State == wanted:
			return nil
		case wanted == svc.Running && status.State == svc.Stopped:
			return fmt.Errorf("it stopped again: exit code %d, service's own %d",
				status.Win32ExitCode, status.ServiceSpecificExitCode)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// DaemonReload implements Services.
func (windowsServices) DaemonReload(context.Context) error {
	return fmt.Errorf("reload unit files on Windows: %w", ErrUnsupported)
}

type unsupportedServices struct{}

func (unsupportedServices) State(_ context.Context, unit string) (ServiceState, error) {
	return ServiceState{}, noImageServices(unit)
}

func (s unsupportedServices) States(ctx context.Context, units ...string) ([]ServiceState, error) {
	return statesOf(ctx, s, units)
}

func (unsupportedServices) SetEnabled(_ context.Context, unit string, _ bool) error {
	return noImageServices(unit)
}

func (unsupportedServices) Do(_ context.Context, unit string, a Action) error {
	return &ServiceError{Unit: printable(unit), Action: a.String(), Err: ErrOffline}
}

func (unsupportedServices) DaemonReload(context.Context) error {
	return &ServiceError{Unit: "services", Action: "reload", Err: ErrOffline}
}

func noImageServices(unit string) error {
	return fmt.Errorf("service %s in a Windows image: %w", printable(unit), ErrUnsupported)
}
