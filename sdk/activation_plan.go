package sdk

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/sdk/machine"
)

// Activate returns the change that applies a configuration and makes it effective; none when the files match, the daemon
// runs and no activation was interrupted.
//
// In an image root the files are separate changes, and the restart is left for first boot.
func Activate(ctx context.Context, m Machine, a Activation) ([]*Change, error) {
	w := &activator{
		Activation: a, machine: m, files: withRegistry{disk{m.FS}, m.Registry}, store: m.State, services: m.Services, pause: firstPause,
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

func (a *activator) plan(ctx context.Context) ([]*Change, error) {
	if len(a.Files) == 0 && a.Environment == nil && len(a.Registry) == 0 && !a.Enable {
		return nil, fmt.Errorf("the activation of %s has no files", a.Unit)
	}
	if len(a.Conflicts) > 0 && a.machine.Target.OS == "windows" {
		return nil, Unsupported("", "only systemd keeps a service from starting in place of another one", "")
	}
	if a.Environment != nil {
		if err := a.Environment.check(); err != nil {
			return nil, err
		}
	}
	for _, value := range a.Registry {
		if err := value.check(a.files); err != nil {
			return nil, err
		}
		value.claim(a.machine)
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
		return fileChanges(a.machine, a.files, a.Companions)
	}
	for i, part := range o.items {
		if !o.have[i].matches(o.want[i]) {
			change.Diff += part.diff(o.have[i], o.want[i])
		}
	}
	change.rehearse, change.field = func(context.Context) error { return a.rehearse(o) }, a.machine.FieldPath()
	return []*Change{change}, nil
}

// rehearse writes the files that differ.
func (a *activator) rehearse(o observation) error {
	for i, part := range o.items {
		if part.kind == fileKind && !o.have[i].matches(o.want[i]) {
			if err := a.files.put(part.path, o.want[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// inImage returns the changes in an image: files and links.
func (a *activator) inImage(o observation) ([]*Change, error) {
	changes, err := fileChanges(a.machine, a.files, slices.Concat(o.off, a.specs()))
	if a.Enable && o.unit.Exists && !o.unit.Enabled {
		changes = append(changes, enablement(a.machine, cmp.Or(o.unit.ID, a.Unit), true))
	}
	return changes, err
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
	count := map[string]int{}
	for i, part := range o.items {
		if part.step == "" && !o.have[i].matches(o.want[i]) {
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
