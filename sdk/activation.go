package sdk

import (
	"cmp"
	"context"
	"time"

	"github.com/machineadm/machineadm/sdk/internal/activate"
	"github.com/machineadm/machineadm/sdk/machine"
)

// DefaultHealthTimeout bounds the time until a daemon is healthy after a restart.
const DefaultHealthTimeout = time.Minute

// Activation is the configuration of a daemon that takes effect only as a whole, and only if the daemon becomes healthy with
// it. Otherwise it is rolled back, and the daemon runs with the old configuration.
type Activation struct {
	// Unit is the daemon's service, such as chronyd.service.
	Unit string
	// Seen has the states of units that the plan function has already queried, by the names in Unit and Conflicts. The
	// missing ones are queried at once. Do queries all of them again.
	Seen map[string]machine.ServiceState
	// Conflicts are units that must not run beside this one. They are stopped, and a drop-in keeps each from starting, whatever
	// enables or starts it; a rollback reverses both. One that is not installed or is masked gets no drop-in, and names of
	// Unit itself are ignored. Every activation removes such a drop-in of its own Unit. Only systemd has drop-ins: with
	// another service manager Conflicts must be empty, and on Windows it is Unsupported.
	Conflicts []string
	// Enable enables the unit once it is healthy.
	Enable bool
	// BeforeInstall allows the files in an image root before the unit is installed there. On a live machine a unit that is
	// not installed is always a Precondition.
	BeforeInstall bool
	// Files are the configuration; there may be none with Enable. With unit files or drop-ins among them, systemd reloads its
	// files before the restart.
	Files []FileSpec
	// Companions are files that the daemon reads when it needs them, such as its registries'. They are changed and
	// rolled back together with Files, but require no restart.
	Companions []FileSpec
	// Environment has variables of the service, which take effect with the files; nil leaves them unmanaged. Only Windows
	// stores variables for its services: elsewhere it is Unsupported, and a drop-in among Files sets them.
	Environment *ServiceEnvironment
	// Registry has values of the registry of Windows, which take effect with the files. Elsewhere it is Unsupported.
	Registry []RegistryValue
	// Check runs the daemon's own checker on the files before anything is changed; nil where there is none. It receives the
	// path of the candidate of each of Files that is not Absent, by the path of the file: in the same directory, with a
	// hidden name and with its mode and owner. Any error refuses the configuration; the output in a *machine.CommandError
	// reaches the administrator.
	Check func(ctx context.Context, m Machine, candidates map[string]string) error
	// Healthy returns an error until the daemon works; nil means that a running one does. It is called repeatedly after a
	// restart and has to respect its context. It also runs with the old configuration, so it must not require what only the
	// new one has. Its errors quote no values of the document; Final marks one that waiting does not fix.
	Healthy func(ctx context.Context, m Machine, p Progress) error
	// Timeout bounds the time until the daemon is healthy, with the new configuration and again after a rollback; 0 means
	// DefaultHealthTimeout.
	Timeout time.Duration
}

// ServiceEnvironment is a set of environment variables of a service. Every user can read them: they must hold no secret.
//
// Variables that an earlier run added and that are no longer desired are removed. Those that others have set stay
// unchanged; one of them with another value than desired is a Precondition. Only one document may describe the variables of
// a service.
type ServiceEnvironment struct{ Variables []Variable }

// Variable is an environment variable. Windows compares names without regard to case.
type Variable struct{ Name, Value string }

// RegistryValue is the desired state of a value of the registry of Windows. The diff shows the old and the new data: the value
// must hold no secret.
type RegistryValue struct {
	// Key is the path of an existing key below HKEY_LOCAL_MACHINE, such as `SYSTEM\CurrentControlSet\Services\W32Time\Config`.
	Key string
	// Name is the name of the value, without a backslash.
	Name string
	// Data is the desired data: machine.RegistryText or machine.RegistryNumber.
	Data machine.RegistryData
	// Absent removes the value instead.
	Absent bool
}

// Activate returns the change that applies a configuration and makes it effective; none when the files match, the daemon
// runs and no activation was interrupted.
//
// In an image root the files are separate changes, and the restart is left for first boot.
func Activate(ctx context.Context, m Machine, a Activation) ([]*Change, error) {
	planned, err := activate.Plan(ctx, m, a.spec())
	if err != nil {
		return nil, err
	}
	var changes []*Change
	for _, c := range planned.Files {
		changes = append(changes, fileChange(m, c))
	}
	if planned.Enable != "" {
		changes = append(changes, enablement(m, planned.Enable, true))
	}
	if planned.Do == nil {
		return changes, nil
	}
	change := &Change{
		ID: "activate:" + a.Unit, Summary: planned.Summary, Diff: planned.Diff, NeedsLive: true,
		Do: func(ctx context.Context, p Progress) error { return planned.Do(ctx, p) },
	}
	if planned.Rehearse != nil {
		change.rehearse, change.field = func(context.Context) error { return planned.Rehearse() }, m.FieldPath()
	}
	return append(changes, change), nil
}

// spec returns the activation as the engine takes it.
func (a Activation) spec() activate.Spec {
	out := activate.Spec{
		Unit: a.Unit, Seen: a.Seen, Conflicts: a.Conflicts, Enable: a.Enable, BeforeInstall: a.BeforeInstall,
		Check: a.Check, Timeout: cmp.Or(max(a.Timeout, 0), DefaultHealthTimeout),
	}
	for _, file := range a.Files {
		out.Files = append(out.Files, file.spec())
	}
	for _, file := range a.Companions {
		out.Companions = append(out.Companions, file.spec())
	}
	if a.Environment != nil {
		out.Environment = &activate.Environment{}
		for _, v := range a.Environment.Variables {
			out.Environment.Variables = append(out.Environment.Variables, activate.Variable(v))
		}
	}
	for _, value := range a.Registry {
		out.Registry = append(out.Registry, activate.RegistryValue(value))
	}
	if a.Healthy != nil {
		out.Healthy = func(ctx context.Context, m Machine, p activate.Progress) error { return a.Healthy(ctx, m, p) }
	}
	return out
}
