package sdk

import (
	"context"
	"time"

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

// activator performs an Activation.
//
// What must survive a crash is in one record, which is saved before the first file is swapped and deleted when the daemon
// is healthy with the new configuration or everything is rolled back. The process may end at any point; the next run uses
// the record and the current state:
//
//	no record                      nothing was swapped: begin, or nothing to do
//	record, other configuration    the document changed since: roll back, then begin again
//	record, swapping               some files are new: swap the others, record the invocation that has not read them
//	record, swapped, files match   a restart is due while the unit is still that invocation or does not run; then wait
//	                               until healthy, whatever restarted it
//	record, swapped, files differ  the process ended during the rollback: swap again, and wait until healthy
//
// The units of Conflicts are stopped before the swap, and the unit is enabled last. Their drop-ins are swapped with the files
// and require no restart. With a record, systemd reads its files again whenever one of them is part of the configuration: the
// process may have ended between the swap and that.
//
// So each run ends with the new configuration in effect, or with the old one and an error. The record is saved only after a
// successful check, so a resumed activation is not checked again.
type activator struct {
	Activation
	machine  Machine // for Check and Healthy
	files    files
	store    stateStore
	services machine.Services
	pause    time.Duration // the first pause between two queries of the daemon
}
