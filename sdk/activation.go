package sdk

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
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
	// Seen has the states of units that the plan function has already queried, by the names in Unit and Instead. The
	// missing ones are queried at once. Do queries all of them again.
	Seen map[string]machine.ServiceState
	// Instead are units that must not run beside this one. They are stopped and disabled before the files are swapped, and
	// get their former state when the activation is rolled back. Units that are not installed, and names of Unit itself,
	// are ignored; a mask stays.
	Instead []string
	// Enable enables the unit once it is healthy.
	Enable bool
	// BeforeInstall allows the files in an image root before the unit is installed there. On a live machine a unit that is
	// not installed is always a Precondition.
	BeforeInstall bool
	// Files are the configuration. With unit files or drop-ins among them, systemd reloads its files before the restart.
	Files []FileSpec
	// Companions are files that the daemon reads when it needs them, such as those of its registries. They are changed and
	// rolled back together with Files, but require no restart.
	Companions []FileSpec
	// Environment has variables of the service, which take effect with the files; nil leaves them unmanaged. Only Windows
	// stores variables for its services: elsewhere it is Unsupported, and a drop-in among Files sets them.
	Environment *ServiceEnvironment
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

// Activate returns the change that applies a configuration and makes it effective; none when the files match, the daemon
// runs and no activation was interrupted.
//
// In an image root the files are separate changes, and the restart is left for first boot.
func Activate(ctx context.Context, m Machine, a Activation) ([]*Change, error) {
	w := &activator{
		Activation: a, machine: m, files: disk{m.FS}, store: m.State, services: m.Services, pause: firstPause,
	}
	environments, err := machine.EnvironmentsOf(m.Services)
	switch {
	case err == nil: // also for the record of another version of the plugin
		w.files = withEnvironment{w.files, environments, a.Unit}
	case a.Environment != nil:
		return nil, err
	}
	return w.plan(ctx)
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
// The units of Instead are stopped and disabled before the swap, and the unit is enabled last. The record has their former
// state.
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

// observation is the current and the desired state.
type observation struct {
	record *record // nil when no activation was interrupted
	unit   machine.ServiceState
	others []other   // of Instead
	have   []version // of the items, in their order
	want   []version
	differ int // the number of items that differ and require a restart
	loose  int // the number of items that differ and require none
}

func (a *activator) observe(ctx context.Context, seen map[string]machine.ServiceState) (observation, error) {
	var o observation
	var err error
	if o.unit, o.others, err = a.units(ctx, seen); err != nil {
		return o, err
	}
	a.claim(o)
	early := a.BeforeInstall && a.machine.Offline() && !o.unit.Exists
	if err := usable(a.machine, a.Unit, o.unit); err != nil && !early {
		return o, err
	}
	if o.record, err = loadRecord(a.store, a.Unit); err != nil {
		return o, err
	}
	for _, part := range a.items() {
		have, want, err := part.observe(a.files)
		if err != nil {
			return o, err
		}
		if part.absent { // a link could not be restored
			info, err := a.files.Lstat(part.path)
			if err == nil && info.Mode.Type() == fs.ModeSymlink {
				return o, Precondition(part.path+" is a link where no file may be", "remove it, then run again")
			}
		}
		switch {
		case have.matches(want):
		case part.loose:
			o.loose++
		default:
			o.differ++
		}
		o.have, o.want = append(o.have, have), append(o.want, want)
	}
	return o, nil
}

func (a *activator) plan(ctx context.Context) ([]*Change, error) {
	if len(a.Files) == 0 && a.Environment == nil {
		return nil, fmt.Errorf("the activation of %s has no files", a.Unit)
	}
	if a.Environment != nil {
		if err := a.Environment.check(); err != nil {
			return nil, err
		}
	}
	for _, spec := range a.specs() {
		if err := spec.check(); err != nil {
			return nil, err
		}
		spec.claim(a.machine)
	}
	o, err := a.observe(ctx, a.Seen)
	if err != nil {
		return nil, err
	}
	change := &Change{ID: "activate:" + a.Unit, Summary: a.summary(o), NeedsLive: true, Do: a.do}
	if a.machine.Offline() {
		change.Summary = "run " + a.Unit + " with its configuration"
		changes, err := a.inImage(o)
		return append(changes, change), err
	}
	if o.record == nil && o.differ == 0 && !down(o.unit) && len(a.switches(o)) == 0 {
		return fileChanges(a.files, a.Companions)
	}
	for i, part := range a.items() {
		if !o.have[i].matches(o.want[i]) {
			change.Diff += part.diff(o.have[i], o.want[i])
		}
	}
	return []*Change{change}, nil
}

func (a *activator) summary(o observation) string {
	steps := a.switches(o)
	switch {
	case o.record != nil:
		return "finish the interrupted activation of the configuration of " + a.Unit
	case o.differ > 0:
		steps = slices.Insert(steps, 0, "change the configuration of "+a.Unit+" ("+a.counted(o)+") and restart it")
	case down(o.unit):
		steps = slices.Insert(steps, 0, "start "+a.Unit)
	}
	return strings.Join(steps, "; ")
}

// counted returns how much of the configuration differs.
func (a *activator) counted(o observation) string {
	files := o.differ + o.loose
	var parts []string
	if last := len(a.Files); a.Environment != nil && !o.have[last].matches(o.want[last]) {
		files, parts = files-1, []string{"its environment"}
	}
	switch {
	case files == 1:
		parts = slices.Insert(parts, 0, "1 file")
	case files > 1:
		parts = slices.Insert(parts, 0, fmt.Sprint(files, " files"))
	}
	return strings.Join(parts, " and ")
}
