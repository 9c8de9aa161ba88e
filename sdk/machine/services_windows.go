package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"
)

// jobTimeout bounds the start or stop of a service, if ctx has no earlier end.
const jobTimeout = 5 * time.Minute

// eventLog is the hint to the messages of services.
const eventLog = "see the event log System, source Service Control Manager"

// windowsServices is the service control manager.
type windowsServices struct{}

func liveServices(Runner) Services { return windowsServices{} }

// imageServices refuses: an offline Windows image has its services in a registry hive that is not loaded.
func imageServices(*FS, string) Services { return unavailable{ErrUnsupported} }

// liveKernel refuses: Windows has neither /proc/sys nor kernel modules.
func liveKernel(Runner) Kernel { return unavailable{ErrUnsupported} }

// with opens a service for one operation.
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
	return closed(service, use(service))
}

// State implements Services.
func (windowsServices) State(_ context.Context, unit string) (ServiceState, error) {
	var state ServiceState
	err := with(unit, "query", func(service *mgr.Service) error {
		config, err := configuration(service)
		if err != nil {
			return err
		}
		status, err := service.Query()
		if err != nil {
			return err
		}
		state = ServiceState{
			ID: unit, Names: []string{unit}, FileState: startType(config.StartType),
			Exists: true, Masked: config.StartType == mgr.StartDisabled, Enabled: config.StartType == mgr.StartAutomatic,
			MainPID: int(status.ProcessId), Fragment: windows.UTF16PtrToString(config.BinaryPathName),
		}
		state.Active, state.Sub = systemdStates(status.State)
		if status.ProcessId != 0 && config.ServiceType&windows.SERVICE_WIN32_SHARE_PROCESS == 0 {
			state.InvocationID, err = processIdentity(status.ProcessId)
		}
		return err
	})
	if errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST) {
		return ServiceState{}, nil
	}
	return state, err
}

// configuration returns what State and SetEnabled use. mgr.Service.Config queries more, some of which wine lacks.
func configuration(service *mgr.Service) (*windows.QUERY_SERVICE_CONFIG, error) {
	var needed uint32
	buffer := make([]byte, 8<<10) // the most that Windows returns
	config := (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(unsafe.SliceData(buffer)))
	return config, windows.QueryServiceConfig(service.Handle, config, uint32(len(buffer)), &needed)
}

// States implements Services.
func (s windowsServices) States(ctx context.Context, units ...string) ([]ServiceState, error) {
	return statesOf(ctx, s, units)
}

// startType returns a start type as Set-Service names it. The other types are of drivers, which start with the kernel.
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

// systemdStates returns the states that systemd uses for the same.
func systemdStates(state svc.State) (active, sub string) {
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

// processIdentity distinguishes a process from later ones with the same PID.
func processIdentity(pid uint32) (_ string, err error) {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return "", nil // it has ended
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

// SetEnabled implements Services. A disabled service gets the start type manual.
func (windowsServices) SetEnabled(_ context.Context, unit string, enabled bool) error {
	start := uint32(mgr.StartManual)
	if enabled {
		start = mgr.StartAutomatic
	}
	return with(unit, enabling(enabled), func(service *mgr.Service) error {
		config, err := configuration(service)
		if err != nil || config.StartType == start || !enabled && config.StartType != mgr.StartAutomatic {
			return err
		}
		const same = windows.SERVICE_NO_CHANGE
		return windows.ChangeServiceConfig(service.Handle, same, start, same, nil, nil, nil, nil, nil, nil, nil)
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

// await polls until the service has a state: not every service supports notifications.
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
			return fmt.Errorf("it stopped again: exit code %d, service-specific exit code %d",
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
