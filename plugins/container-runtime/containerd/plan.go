package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/daemon"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/layout"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// settingsFor translates the document for a release. What that lacks, another provider or release may have.
func settingsFor(want settings.Desired, r settings.Release) ([]settings.Setting, error) {
	if err := sdk.UnsupportedFields(want.Unsupported(r)...); err != nil {
		return nil, err
	}
	desired, violations := want.Settings(r)
	if len(violations) > 0 {
		return nil, sdk.InvalidConfig(violations...)
	}
	return desired, nil
}

// openFiles refuses RLIMIT_NOFILE above fs.nr_open: no container of the runtime starts with it. Source: getrlimit(2).
func openFiles(m sdk.Machine, want settings.Desired) error {
	if m.Offline() || m.Target.OS != "linux" {
		return nil
	}
	text, err := m.Kernel.Parameter("fs/nr_open")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	most, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return nil //nolint:nilerr // a kernel without the parameter has no such limit
	}
	var above []sdk.Violation
	for _, r := range want.Runtimes {
		if limit, ok := r.Rlimits["RLIMIT_NOFILE"]; ok && limit.Hard > most {
			above = append(above, sdk.Violation{
				Field: string(r.Field + ".baseSpec.rlimits.RLIMIT_NOFILE.hard"), Message: fmt.Sprintf("is above fs.nr_open, which is %d, and no container of this runtime starts", most),
				Hint: "use a smaller limit, or put a Sysctl document with a greater fs.nr_open before this one", Needs: "sysctl:fs.nr_open",
			})
		}
	}
	if len(above) > 0 {
		return sdk.Preconditions(above...)
	}
	return nil
}

// activationFor is the activation of files that the daemon reads when it starts.
func activationFor(m sdk.Machine, i daemon.Installation, want settings.Desired, c layout.Configuration, files []sdk.FileSpec) sdk.Activation {
	k := daemon.Checker{Installation: i, Configuration: c, Environment: want.Environment, Service: layout.ServiceFiles(want)}
	unit := settings.PathsOf(m.Target.OS).Unit
	a := sdk.Activation{
		Unit: unit, Seen: map[string]machine.ServiceState{unit: i.State}, Files: files,
		Environment: layout.ServiceEnvironment(want), Check: k.Check, Healthy: k.Healthy,
	}
	if m.Offline() {
		a.BeforeInstall = true
		a.Environment = nil // of a service of Windows: first boot sets it
	}
	return a
}

// plan determines what is missing. The files that the daemon reads when it starts are one activation. The tree of
// registries, which the daemon reads at every pull, is rolled back with them, and alone needs no restart. Files to which
// nothing refers any more are removed last.
func plan(ctx context.Context, m sdk.Machine, doc v1alpha1.ContainerRuntime) (sdk.Plan, error) {
	want, violations := settings.Resolve(doc, m.Target.OS)
	if len(violations) > 0 {
		return sdk.Plan{}, sdk.InvalidConfig(violations...)
	}
	if len(want.Elsewhere) > 0 {
		return sdk.Plan{}, sdk.Final(sdk.Preconditions(want.Elsewhere...))
	}
	if err := sdk.ClaimSpec(m, "unit:"+settings.PathsOf(m.Target.OS).Unit, doc.Spec); err != nil {
		return sdk.Plan{}, err
	}
	driver, field := want.CgroupDriver()
	if driver != "" {
		m.Claim("node:cgroup-driver", field, driver)
	}
	m.Assume("node:container-runtime", "spec.provider", "containerd")
	i, err := daemon.Find(ctx, m, want.Version)
	if err != nil {
		return sdk.Plan{Warnings: want.Warnings}, err
	}
	now, err := layout.Read(m, i.Config, i.Release, want.Spec.Imports)
	if err != nil {
		return sdk.Plan{}, err
	}
	if driver == "" && m.Target.OS == "linux" && !i.Release.Since(2, 0) { // the kubelet asks later versions for their driver
		m.Assume("node:cgroup-driver", "spec.cgroupDriver", now.CgroupDriver())
	}
	if want, err = layout.Beside(want, m, now, i.Release); err != nil {
		return sdk.Plan{}, err
	}
	desired, err := settingsFor(want, i.Release)
	if err != nil {
		return sdk.Plan{}, err
	}
	if err := daemon.Overridden(m, want.Environment); err != nil {
		return sdk.Plan{}, err
	}
	if err := openFiles(m, want); err != nil {
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
	if err := daemon.SandboxWarning(ctx, m, want.Spec.SandboxImage, &result); err != nil {
		return sdk.Plan{}, err
	}
	registries, err := layout.Registries(m, want, i.Release, &result)
	if err != nil {
		return sdk.Plan{}, err
	}
	// A file comes before the file that refers to it.
	files := slices.Concat(base, layout.ServiceFiles(want))
	empty, err := layout.EmptyDropIn(m, files)
	if err != nil {
		return sdk.Plan{}, err
	}
	files = slices.Concat(files, empty, c.Files())
	a := activationFor(m, i, want, c, files)
	a.Companions = registries.Files
	changes, err := sdk.Activate(ctx, m, a)
	if err != nil {
		return sdk.Plan{}, err
	}
	result.Add(changes...)
	result.Add(registries.Removals(m)...)
	return result, layout.Leftovers(m, files, &result)
}
