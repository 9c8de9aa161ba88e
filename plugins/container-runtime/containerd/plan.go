package main

import (
	"context"
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// plan decides what is missing. What the daemon reads when it starts is one activation. What it reads at every pull, the
// tree of registries, is rolled back with that, but needs no restart by itself. What nothing refers to any more is
// removed last.
func plan(ctx context.Context, m sdk.Machine, doc v1alpha1.ContainerRuntime) (sdk.Plan, error) {
	want, violations := resolve(doc, m.Target.OS)
	if len(violations) > 0 {
		return sdk.Plan{}, sdk.InvalidConfig(violations...)
	}
	if err := claim(m, doc.Spec); err != nil {
		return sdk.Plan{}, err
	}
	i, err := find(ctx, m, want.version)
	if err != nil {
		return sdk.Plan{}, err
	}
	now, err := readPresent(m, i, want.imports)
	if err != nil {
		return sdk.Plan{}, err
	}
	if want, err = want.beside(m, now, i.release); err != nil {
		return sdk.Plan{}, err
	}
	settings, err := settingsFor(want, i.release)
	if err != nil {
		return sdk.Plan{}, err
	}
	result := sdk.Plan{Warnings: slices.Concat(want.warnings, want.overridden(i.release))}
	base, settings, err := baseSpecs(ctx, m, i, want, settings, &result)
	if err != nil {
		return sdk.Plan{}, err
	}
	c, err := configure(m, i, now, settings)
	if err != nil {
		return sdk.Plan{}, err
	}
	result.Warnings = append(result.Warnings, c.warnings...)
	if err := sandboxWarning(ctx, m, want, &result); err != nil {
		return sdk.Plan{}, err
	}
	registries, err := planCerts(m, want, i.release, &result)
	if err != nil {
		return sdk.Plan{}, err
	}
	files, err := activated(m, c, want, base)
	if err != nil {
		return sdk.Plan{}, err
	}
	changes, err := activation(ctx, m, i, want, c, files, registries.files)
	if err != nil {
		return sdk.Plan{}, err
	}
	result.Add(changes...)
	result.Add(registries.removals(m)...)
	return result, planLeftovers(m, files, &result)
}

// settingsFor is what the document means to a release. What that one cannot say, another provider or release may.
func settingsFor(want desired, r release) ([]setting, error) {
	if lacking := want.unsupported(r); len(lacking) > 0 {
		e := &pluginv1.Error{Code: pluginv1.CodeUnsupported, Message: lacking[0].Message, Hint: lacking[0].Hint, Violations: lacking}
		for _, v := range lacking[1:] {
			e.Message += "; " + v.Field + ": " + v.Message
		}
		return nil, e
	}
	settings, violations := want.settings(r)
	if len(violations) > 0 {
		return nil, sdk.InvalidConfig(violations...)
	}
	return settings, nil
}

// activated are the files that take effect with a restart: first what is referred to, last what refers to it.
func activated(m sdk.Machine, c configuration, want desired, base []sdk.FileSpec) ([]sdk.FileSpec, error) {
	files := slices.Concat(base, want.serviceFiles())
	if want.os != "windows" {
		stub, err := emptiedDropIn(m, want, files)
		if err != nil {
			return nil, err
		}
		files = append(files, stub...)
	}
	if c.dropIn != nil {
		files = append(files, *c.dropIn)
	}
	return append(files, c.main), nil
}

func activation(
	ctx context.Context, m sdk.Machine, i installation, want desired, c configuration, files, registries []sdk.FileSpec,
) ([]*sdk.Change, error) {
	a := activationFor(m, i, want, c, files)
	a.Companions = registries
	if m.Offline() {
		a.BeforeInstall = true
		a.Environment = nil // of a service of Windows: first boot sets it
	}
	return sdk.Activate(ctx, m, a)
}

func activationFor(m sdk.Machine, i installation, want desired, c configuration, files []sdk.FileSpec) sdk.Activation {
	k := checker{installation: i, c: c}
	return sdk.Activation{
		Unit: unitOf(m), Seen: map[string]machine.ServiceState{unitOf(m): i.state}, Files: files,
		Environment: want.serviceEnvironment(), Check: k.check, Healthy: k.healthy,
	}
}
