// Package activate swaps the configuration of a daemon, restarts it, waits until it is healthy, and rolls back where it does not become
// so. It is the engine of sdk.Activate, whose documentation holds here.
package activate

import (
	"context"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/internal/files"
	"github.com/machineadm/machineadm/sdk/internal/units"
	"github.com/machineadm/machineadm/sdk/machine"
)

// Spec is an sdk.Activation, whose fields it has. Timeout is not 0.
type Spec struct {
	Unit                  string
	Seen                  map[string]machine.ServiceState
	Conflicts             []string
	Enable, BeforeInstall bool
	Files, Companions     []files.Spec
	Environment           *Environment
	Registry              []RegistryValue
	Check                 func(ctx context.Context, m machine.Machine, candidates map[string]string) error
	Healthy               func(ctx context.Context, m machine.Machine, p Progress) error
	Timeout               time.Duration
}

// Progress is sdk.Progress.
type Progress interface {
	Report(message string)
	Warn(field, message string)
	RequestReboot(r pluginv1.Reboot)
}

// Planned is what an activation has to do.
type Planned struct {
	// Files are the changes of files that are made one by one: in an image root, or of Companions alone.
	Files []*files.Change
	// Enable is the unit that is enabled in an image root; empty for none.
	Enable string
	// Do makes the configuration effective on a live machine; nil when it is. Summary and Diff describe it.
	Do            func(ctx context.Context, p Progress) error
	Summary, Diff string
	// Rehearse writes the files as Do does, and does nothing else; nil in an image root.
	Rehearse func() error
}

// activator performs a Spec.
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
	Spec
	machine  machine.Machine // for Check and Healthy
	files    files.System
	store    units.Records
	services machine.Services
	pause    time.Duration // the first pause between two queries of the daemon
}
