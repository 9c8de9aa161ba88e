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

// DefaultHealthTimeout is how long a daemon may take to become healthy after a restart.
const DefaultHealthTimeout = time.Minute

// Activation is the configuration of a daemon that takes effect only as a whole, and only if the daemon comes up with
// it; else the old configuration is put back and the daemon runs with that.
type Activation struct {
	// Unit is the daemon's service, as in chronyd.service.
	Unit string
	// Seen has the states of units that the plan has asked for already, by the names in Unit and Instead. Those that are
	// missing are asked for, all at once. What is done later goes by what is then.
	Seen map[string]machine.ServiceState
	// Instead are units that must not run beside this one: they are stopped and no longer started at boot before the files
	// are swapped, and get back what they were when the activation is rolled back. A unit that is not installed, and a
	// name of Unit itself, are passed over; a mask stays as it is.
	Instead []string
	// Enable has the unit started at boot, once it is healthy.
	Enable bool
	// BeforeInstall lets an image root have the files before the unit is installed in it. On a live machine a unit that is
	// not installed is a Precondition all the same.
	BeforeInstall bool
	// Files are the configuration. With unit files or drop-ins among them, systemd reads its files again before the
	// restart.
	Files []FileSpec
	// Companions are files that the daemon reads whenever it needs them, such as those of its registries. They come and are
	// rolled back together with Files, but alone they restart nothing.
	Companions []FileSpec
	// Environment are variables of the service, which take effect with the files; nil: nobody asks. Windows alone keeps
	// them for its services: elsewhere it is Unsupported, and a drop-in among Files says them.
	Environment *ServiceEnvironment
	// Check has the daemon's own checker judge the files before anything is changed; nil where a daemon has none. It is
	// given where each of Files that shall be there lies for now, by its path: beside it, under a hidden name, with its mode and owner. Any
	// error refuses the configuration; what a *machine.CommandError's program said reaches the administrator.
	Check func(ctx context.Context, m Machine, candidates map[string]string) error
	// Healthy says whether the daemon does its work; nil means yes. It is asked again and again after a restart, and
	// must heed its context. It judges the old configuration too, so it asks for nothing that only the new one
	// brings. Its errors quote no values of the document; Final marks one that waiting does not cure. Progress is for what it
	// waits for.
	Healthy func(ctx context.Context, m Machine, p Progress) error
	// Timeout is how long the daemon may take to become healthy, with the new configuration and, if need be, once more
	// with the old one; 0 means DefaultHealthTimeout.
	Timeout time.Duration
}

// Activate returns the change that makes a configuration so and brings it into effect; none when the files are so, the
// daemon runs and no activation was interrupted.
//
// In an image root the files are changes of their own, and the restart is left for first boot.
func Activate(ctx context.Context, m Machine, a Activation) ([]*Change, error) {
	w := &activator{
		Activation: a, machine: m, files: disk{m.FS}, memory: m.State, services: m.Services, pause: firstPause,
	}
	environments, err := machine.EnvironmentsOf(m.Services)
	switch {
	case err == nil: // also for what a record of another version of the plugin may hold
		w.files = withEnvironment{w.files, environments, a.Unit}
	case a.Environment != nil:
		return nil, err
	}
	return w.plan(ctx)
}

// activator carries an Activation out.
//
// What it must not forget is in one record, which is saved before the first file is swapped and deleted when the
// daemon runs well with the new configuration or everything is as it was. The process may end anywhere; the next run
// goes by what the record says and what it sees:
//
//	no record                 nothing was swapped: begin, or nothing to do
//	record, other wish        the document changed since: undo, then begin anew
//	record, swapping          some files are new: swap the others, note the invocation that has not seen them
//	record, swapped, files    a restart is due while the unit is still that invocation (or does not run); then
//	  as wanted               wait until healthy. The verdict is made now, whoever restarted it
//	record, swapped, files    it ended while undoing: swap again, and let the daemon judge again
//	  not as wanted
//
// The units of Instead are turned off before the swap, whenever one is on, and the unit is enabled last. The record has what
// they were.
//
// So each run ends with the new configuration in effect, or with the old one back and an error. A record is only saved
// for what the checker took, so what is continued is not checked again.
type activator struct {
	Activation
	machine  Machine // for Check and Healthy
	files    files
	memory   memory
	services machine.Services
	pause    time.Duration // the first pause between two looks at the daemon
}

// sight is one look at the machine.
type sight struct {
	record *record // nil when no activation was interrupted
	unit   machine.ServiceState
	others []other   // of Instead
	have   []version // of the items, in their order
	want   []version
	differ int // how many are not as wanted and need a restart
	loose  int // how many are not as wanted and need none
}

func (a *activator) look(ctx context.Context, seen map[string]machine.ServiceState) (sight, error) {
	var s sight
	var err error
	if s.unit, s.others, err = a.units(ctx, seen); err != nil {
		return s, err
	}
	a.claim(s)
	early := a.BeforeInstall && a.machine.Offline() && !s.unit.Exists
	if err := usable(a.machine, a.Unit, s.unit); err != nil && !early {
		return s, err
	}
	if s.record, err = loadRecord(a.memory, a.Unit); err != nil {
		return s, err
	}
	for _, part := range a.items() {
		have, err := look(a.files, part.path)
		if err != nil {
			return s, err
		}
		want, err := part.want(have)
		if err != nil {
			return s, err
		}
		if part.absent { // a link could not be put back
			info, err := a.files.Lstat(part.path)
			if err == nil && info.Mode.Type() == fs.ModeSymlink {
				return s, Precondition(part.path+" is a link where no file shall be", "remove it, then run again")
			}
		}
		switch {
		case have.is(want):
		case part.loose:
			s.loose++
		default:
			s.differ++
		}
		s.have, s.want = append(s.have, have), append(s.want, want)
	}
	return s, nil
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
	s, err := a.look(ctx, a.Seen)
	if err != nil {
		return nil, err
	}
	change := &Change{ID: "activate:" + a.Unit, Summary: a.summary(s), NeedsLive: true, Do: a.do}
	if a.machine.Offline() {
		change.Summary = "see that " + a.Unit + " runs with its configuration"
		changes, err := a.inImage(s)
		return append(changes, change), err
	}
	if s.record == nil && s.differ == 0 && !down(s.unit) && len(a.switches(s)) == 0 {
		return fileChanges(a.files, a.Companions)
	}
	for i, part := range a.items() {
		if !s.have[i].is(s.want[i]) {
			change.Diff += part.diff(s.have[i], s.want[i])
		}
	}
	return []*Change{change}, nil
}

func (a *activator) summary(s sight) string {
	switches := a.switches(s)
	switch {
	case s.record != nil:
		return "finish the interrupted activation of the configuration of " + a.Unit
	case s.differ > 0:
		switches = slices.Insert(switches, 0, "change the configuration of "+a.Unit+" ("+a.counted(s)+") and restart it")
	case down(s.unit):
		switches = slices.Insert(switches, 0, "start "+a.Unit)
	}
	return strings.Join(switches, "; ")
}

// counted says how much of the configuration is not as wanted.
func (a *activator) counted(s sight) string {
	files, text := s.differ+s.loose, ""
	if last := len(a.Files); a.Environment != nil && !s.have[last].is(s.want[last]) {
		files, text = files-1, "its environment"
	}
	if files > 0 && text != "" {
		text = " and " + text
	}
	switch files {
	case 0:
		return text
	case 1:
		return "1 file" + text
	default:
		return fmt.Sprintf("%d files%s", files, text)
	}
}
