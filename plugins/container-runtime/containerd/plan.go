package main

import (
	"context"
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/daemon"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/layout"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// plan decides what is missing. What the daemon reads when it starts is one activation. What it reads at every pull, the
// tree of registries, is rolled back with that, but needs no restart by itself. What nothing refers to any more is
// removed last.
func plan(ctx context.Context, m sdk.Machine, doc v1alpha1.ContainerRuntime) (sdk.Plan, error) {
	want, violations := settings.Resolve(doc, m.Target.OS)
	if len(violations) > 0 {
		return sdk.Plan{}, sdk.InvalidConfig(violations...)
	}
	if err := claim(m, doc.Spec); err != nil {
		return sdk.Plan{}, err
	}
	i, err := daemon.Find(ctx, m, want.Version)
	if err != nil {
		return sdk.Plan{}, err
	}
	now, err := layout.Read(m, i.Config, i.Release, want.Imports)
	if err != nil {
		return sdk.Plan{}, err
	}
	if want, err = layout.Beside(want, m, now, i.Release); err != nil {
		return sdk.Plan{}, err
	}
	desired, err := settingsFor(want, i.Release)
	if err != nil {
		return sdk.Plan{}, err
	}
	result := sdk.Plan{Warnings: slices.Concat(want.Warnings, want.Overridden(i.Release))}
	base, desired, err := layout.BaseSpecs(m, want, i.Release, desired, &result, func() ([]byte, error) { return daemon.DefaultSpec(ctx, m, i) })
	if err != nil {
		return sdk.Plan{}, err
	}
	c, err := layout.Configure(m, i.Release, now, desired)
	if err != nil {
		return sdk.Plan{}, err
	}
	result.Warnings = append(result.Warnings, c.Warnings...)
	if err := daemon.SandboxWarning(ctx, m, want, &result); err != nil {
		return sdk.Plan{}, err
	}
	registries, err := layout.Registries(m, want, i.Release, &result)
	if err != nil {
		return sdk.Plan{}, err
	}
	files, err := activated(m, c, want, base)
	if err != nil {
		return sdk.Plan{}, err
	}
	changes, err := activation(ctx, m, i, want, c, files, registries.Files)
	if err != nil {
		return sdk.Plan{}, err
	}
	result.Add(changes...)
	result.Add(registries.Removals(m)...)
	return result, layout.Leftovers(m, files, &result)
}

// settingsFor is what the document means to a release. What that one cannot say, another provider or release may.
func settingsFor(want settings.Desired, r settings.Release) ([]settings.Setting, error) {
	if lacking := want.Unsupported(r); len(lacking) > 0 {
		e := &pluginv1.Error{Code: pluginv1.CodeUnsupported, Message: lacking[0].Message, Hint: lacking[0].Hint, Violations: lacking}
		for _, v := range lacking[1:] {
			e.Message += "; " + v.Field + ": " + v.Message
		}
		return nil, e
	}
	desired, violations := want.Settings(r)
	if len(violations) > 0 {
		return nil, sdk.InvalidConfig(violations...)
	}
	return desired, nil
}

// activated are the files that take effect with a restart: first what is referred to, last what refers to it.
func activated(m sdk.Machine, c layout.Configuration, want settings.Desired, base []sdk.FileSpec) ([]sdk.FileSpec, error) {
	files := slices.Concat(base, layout.ServiceFiles(want))
	if want.OS != "windows" {
		stub, err := layout.EmptyDropIn(m, want, files)
		if err != nil {
			return nil, err
		}
		files = append(files, stub...)
	}
	if c.DropIn != nil {
		files = append(files, *c.DropIn)
	}
	return append(files, c.Main), nil
}

func activation(
	ctx context.Context, m sdk.Machine, i daemon.Installation, want settings.Desired, c layout.Configuration, files, registries []sdk.FileSpec,
) ([]*sdk.Change, error) {
	a := activationFor(m, i, want, c, files)
	a.Companions = registries
	if m.Offline() {
		a.BeforeInstall = true
		a.Environment = nil // of a service of Windows: first boot sets it
	}
	return sdk.Activate(ctx, m, a)
}

func activationFor(m sdk.Machine, i daemon.Installation, want settings.Desired, c layout.Configuration, files []sdk.FileSpec) sdk.Activation {
	k := daemon.Checker{Installation: i, C: c}
	return sdk.Activation{
		Unit: settings.PathsOf(m.Target.OS).Unit, Seen: map[string]machine.ServiceState{settings.PathsOf(m.Target.OS).Unit: i.State}, Files: files,
		Environment: layout.ServiceEnvironment(want), Check: k.Check, Healthy: k.Healthy,
	}
}
