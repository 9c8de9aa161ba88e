package activate

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/sdk/internal/fault"
	"github.com/machineadm/machineadm/sdk/internal/files"
	"github.com/machineadm/machineadm/sdk/internal/units"
	"github.com/machineadm/machineadm/sdk/machine"
)

// units returns the state of the unit and of the units of Conflicts, each once. It queries those that seen lacks.
func (a *activator) units(ctx context.Context, seen map[string]machine.ServiceState) (machine.ServiceState, []other, error) {
	names := append([]string{a.Unit}, a.Conflicts...)
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, ok := seen[name]; return ok })
	states := map[string]machine.ServiceState{}
	maps.Copy(states, seen)
	if len(missing) > 0 {
		queried, err := a.services.States(ctx, missing...)
		if err != nil {
			return machine.ServiceState{}, nil, err
		}
		for i, name := range missing {
			states[name] = queried[i]
		}
	}
	var others []other
	done := []string{cmp.Or(states[a.Unit].ID, a.Unit)}
	for _, name := range a.Conflicts {
		if id := cmp.Or(states[name].ID, name); !slices.Contains(done, id) {
			others, done = append(others, other{id, states[name]}), append(done, id)
		}
	}
	return states[a.Unit], others, nil
}

// offDropIns returns the drop-ins that keep the units of Conflicts from starting, and the drop-ins of the unit itself, which are to
// be removed.
func (a *activator) offDropIns(o observation) ([]files.Spec, error) {
	if a.machine.Target.OS == "windows" {
		return nil, nil
	}
	var all []files.Spec
	for _, other := range o.others {
		if s := other.state; s.Exists && (!s.Masked || s.FileState == "masked-runtime") { // until the next boot
			all = append(all, a.offDropIn(other.name))
		}
	}
	names := append([]string{cmp.Or(o.unit.ID, a.Unit)}, o.unit.Names...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		have, err := a.files.Read(offPath(name))
		if err != nil {
			return nil, err
		}
		if have.Exists {
			all = append(all, files.Spec{Path: offPath(name), Step: "let " + name + " start again"})
		}
	}
	return all, nil
}

// offDropIn is the drop-in that keeps another unit from starting. A condition alone is not enough: a start that it prevents
// stops the units that conflict with it all the same, and at boot it can cancel theirs. systemd refuses a service without
// ExecStart before that.
func (a *activator) offDropIn(unit string) files.Spec {
	content := "# machineadm keeps " + unit + " from starting: " + a.Unit + " runs in its place.\n" +
		"# To undo this, remove this file, then run: systemctl daemon-reload\n" +
		"[Unit]\nConditionPathExists=!/\n"
	if strings.HasSuffix(unit, ".service") {
		content += "[Service]\nExecStart=\n"
	}
	return files.Spec{
		Path: offPath(unit), Step: "keep " + unit + " from starting",
		Want: files.State{Exists: true, Content: []byte(content), Mode: 0o644, UID: -1, GID: -1},
	}
}

// offPath is the path of the drop-in that keeps a unit from starting. It is the last one that systemd reads: an empty
// assignment in a drop-in resets the conditions of all before it.
func offPath(unit string) string { return units.DropInPath(unit, "zz-machineadm-off") }

// stopOthers stops the units of Conflicts, and records those that ran.
func (a *activator) stopOthers(ctx context.Context, p Progress, o observation) error {
	for _, other := range o.others {
		if !other.runs() {
			continue
		}
		if r := o.record; !units.Down(other.state) && !slices.Contains(r.Stopped, other.name) {
			r.Stopped = append(r.Stopped, other.name)
			if err := r.save(a.store); err != nil {
				return err
			}
		}
		p.Report("stopping " + other.name)
		if err := a.services.Do(ctx, other.name, machine.Stop); err != nil {
			return err
		}
	}
	return nil
}

// enable enables the unit, where Enable asks for it.
func (a *activator) enable(ctx context.Context, p Progress) error {
	if !a.Enable {
		return nil
	}
	state, err := a.services.State(ctx, a.Unit)
	if err != nil || state.Enabled {
		return err
	}
	p.Report("enabling " + a.Unit)
	err = a.services.SetEnabled(ctx, cmp.Or(state.ID, a.Unit), true)
	return units.Explained(ctx, a.machine, a.services, a.Unit, err)
}

// startOthers starts the units of Conflicts that ran, and returns the outcome in words. One that does not start again is no
// error.
func (a *activator) startOthers(ctx context.Context, r *record) (string, error) {
	outcome := ""
	for _, unit := range slices.Backward(r.Stopped) {
		state, err := a.services.State(ctx, unit)
		if err != nil {
			return "", err
		}
		if !units.Down(state) {
			continue
		}
		if err := units.Start(ctx, a.machine, a.services, unit); err != nil {
			outcome += ", but " + unit + " could not be started again (" + fault.Message(err) + ")"
		} else {
			outcome += ", and " + unit + " runs again"
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	return outcome, nil
}
