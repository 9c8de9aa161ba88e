package activate

import (
	"context"
	"io/fs"

	"github.com/machineadm/machineadm/sdk/internal/fault"
	"github.com/machineadm/machineadm/sdk/internal/files"
	"github.com/machineadm/machineadm/sdk/internal/units"
	"github.com/machineadm/machineadm/sdk/machine"
)

func (a *activator) observe(ctx context.Context, seen map[string]machine.ServiceState) (observation, error) {
	var o observation
	var err error
	if o.unit, o.others, err = a.units(ctx, seen); err != nil {
		return o, err
	}
	if o.off, err = a.offDropIns(o); err != nil {
		return o, err
	}
	a.claim(o)
	if a.Enable && o.unit.Exists && !o.unit.Masked {
		if err := units.Enablable(a.Unit, o.unit); err != nil {
			return o, err
		}
	}
	early := a.BeforeInstall && a.machine.Offline() && !o.unit.Exists
	if err := units.Usable(a.machine, a.Unit, o.unit); err != nil && !early {
		return o, err
	}
	if o.record, err = loadRecord(a.store, a.Unit); err != nil {
		return o, err
	}
	o.items = a.items(o.off)
	for _, part := range o.items {
		have, want, err := part.observe(a.files)
		if err != nil {
			return o, err
		}
		if err := a.restorable(part, have); err != nil {
			return o, err
		}
		switch {
		case have.Matches(want):
		case part.step != "":
			o.steps = append(o.steps, part.step)
		case part.loose:
			o.loose++
		default:
			o.differ++
		}
		o.have, o.want = append(o.have, have), append(o.want, want)
	}
	return o, nil
}

// restorable refuses a link that a rollback could not restore: one to remove, and on a live machine one that leads to nothing.
func (a *activator) restorable(part item, have files.State) error {
	if part.kind != fileKind || have.Exists && !part.absent || !part.absent && a.machine.Offline() {
		return nil
	}
	info, err := a.files.Lstat(part.path)
	switch {
	case err != nil || info.Mode.Type() != fs.ModeSymlink:
		return nil //nolint:nilerr // what else is wrong with it, the plan of the file reports
	case part.absent:
		return fault.Precondition(part.path+" is a link where no file may be", "remove it, then run again")
	}
	return fault.Precondition(part.path+" is a dangling link", "remove it, then run again")
}

// claim records what the document owns of the units, and their drop-ins.
func (a *activator) claim(o observation) {
	if a.Environment != nil {
		units.Claim(a.machine, a.Unit, o.unit, "environment", a.Environment.entries()...)
	}
	units.Claim(a.machine, a.Unit, o.unit, "running", "true")
	if a.Enable {
		units.Claim(a.machine, a.Unit, o.unit, "enabled", "true")
	}
	for _, other := range o.others {
		if other.state.Exists { // one that is not may become a name of the unit, when that is enabled
			units.Claim(a.machine, other.name, other.state, "running", "false")
		}
	}
	for _, spec := range o.off {
		spec.Claim(a.machine)
	}
}

// switches returns the missing steps of Conflicts and Enable.
func (a *activator) switches(o observation) []string {
	var all []string
	for _, other := range o.others {
		if other.runs() {
			all = append(all, "stop "+other.name)
		}
	}
	all = append(all, o.steps...)
	if a.Enable && !o.unit.Enabled {
		all = append(all, "enable "+a.Unit)
	}
	return all
}
