package activate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/internal/files"
	"github.com/machineadm/machineadm/sdk/internal/units"
	"github.com/machineadm/machineadm/sdk/machine"
)

// Plan returns what an activation has to do; nothing when the files match, the daemon runs and no activation was interrupted.
func Plan(ctx context.Context, m machine.Machine, s Spec) (Planned, error) {
	w := &activator{
		Spec: s, machine: m, files: withRegistry{files.Disk{FS: m.FS}, m.Registry}, store: m.State, services: m.Services, pause: firstPause,
	}
	environments, err := machine.EnvironmentsOf(m.Services)
	switch {
	case err == nil: // also for the record of another version of the plugin
		w.files = withEnvironment{w.files, environments, s.Unit}
	case s.Environment != nil:
		return Planned{}, err
	}
	return w.plan(ctx)
}

func (a *activator) plan(ctx context.Context) (Planned, error) {
	if len(a.Files) == 0 && a.Environment == nil && len(a.Registry) == 0 && !a.Enable {
		return Planned{}, fmt.Errorf("the activation of %s has no files", a.Unit)
	}
	if len(a.Conflicts) > 0 && a.machine.Target.OS == "windows" {
		return Planned{}, &pluginv1.Error{
			Code: pluginv1.CodeUnsupported, Message: "only systemd keeps a service from starting in place of another one",
		}
	}
	if a.Environment != nil {
		if err := a.Environment.check(); err != nil {
			return Planned{}, err
		}
	}
	for _, value := range a.Registry {
		if err := value.check(a.files); err != nil {
			return Planned{}, err
		}
		value.claim(a.machine)
	}
	for _, spec := range a.specs() {
		if err := spec.Check(); err != nil {
			return Planned{}, err
		}
		spec.Claim(a.machine)
	}
	o, err := a.observe(ctx, a.Seen)
	if err != nil {
		return Planned{}, err
	}
	out := Planned{Do: a.do, Summary: a.summary(o)}
	if a.machine.Offline() {
		out.Summary = "run " + a.Unit + " with its configuration"
		if a.Enable && o.unit.Exists && !o.unit.Enabled {
			out.Enable = cmp.Or(o.unit.ID, a.Unit)
		}
		out.Files, err = files.Changes(a.files, slices.Concat(o.off, a.specs()))
		return out, err
	}
	if o.record == nil && o.differ == 0 && !units.Down(o.unit) && len(a.switches(o)) == 0 {
		changes, err := files.Changes(a.files, a.Companions)
		return Planned{Files: changes}, err
	}
	for i, part := range o.items {
		if !o.have[i].Matches(o.want[i]) {
			out.Diff += part.diff(o.have[i], o.want[i])
		}
	}
	out.Rehearse = func() error { return a.rehearse(o) }
	return out, nil
}

// rehearse writes the files that differ.
func (a *activator) rehearse(o observation) error {
	for i, part := range o.items {
		if part.kind == fileKind && !o.have[i].Matches(o.want[i]) {
			if err := a.files.Put(part.path, o.want[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *activator) summary(o observation) string {
	steps := a.switches(o)
	switch {
	case o.record != nil:
		return "finish the interrupted activation of the configuration of " + a.Unit
	case o.differ > 0:
		steps = slices.Insert(steps, 0, "change the configuration of "+a.Unit+" ("+a.counted(o)+") and restart it")
	case units.Down(o.unit):
		steps = slices.Insert(steps, 0, "start "+a.Unit)
	}
	return strings.Join(steps, "; ")
}

// counted returns how much of the configuration differs.
func (a *activator) counted(o observation) string {
	count := map[string]int{}
	for i, part := range o.items {
		if part.step == "" && !o.have[i].Matches(o.want[i]) {
			count[part.kind]++
		}
	}
	var parts []string
	for _, kind := range []string{fileKind, registryKind, environmentKind} {
		switch n := count[kind]; {
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, kind))
		case n == 1 && kind == environmentKind:
			parts = append(parts, kind)
		case n == 1:
			parts = append(parts, "1 "+kind)
		}
	}
	return strings.Join(parts, " and ")
}
