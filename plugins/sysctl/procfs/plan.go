package main

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// validate returns the violations of a document that need no machine.
func validate(doc v1alpha1.Sysctl) []sdk.Violation {
	_, violations := resolve(doc, profiles())
	return violations
}

// claim claims what the document owns beside its files.
func claim(m sdk.Machine, d desired) {
	for _, p := range d.parameters {
		m.Claim("sysctl:"+p.key.String(), p.field, strings.Join(strings.Fields(p.value), " "))
	}
	for _, module := range d.modules {
		m.Claim("module:"+canonicalModule(module), "", "true")
	}
}

// plan returns the missing changes. Modules come first, because they provide parameters; the file in /etc/sysctl.d, which
// takes effect at boot, is written only after the kernel has accepted every value.
func plan(_ context.Context, m sdk.Machine, doc v1alpha1.Sysctl) (sdk.Plan, error) {
	d, violations := resolve(doc, profiles())
	if len(violations) > 0 {
		return sdk.Plan{}, sdk.InvalidConfig(violations...)
	}
	claim(m, d)
	source := files{m.FS}
	shared, err := sharedFiles(source, d)
	if err != nil {
		return sdk.Plan{}, err
	}
	if err := checkBoot(source, d, shared); err != nil {
		return sdk.Plan{}, err
	}
	result := sdk.Plan{Warnings: d.warnings}
	change, err := ownFile(m, d, d.modulesFile(), renderModules(d))
	if err != nil {
		return sdk.Plan{}, err
	}
	result.Add(change)
	if m.Offline() {
		planImage(m.Kernel, d, &result)
	} else if err := planLive(m.Kernel, d, &result); err != nil {
		return sdk.Plan{}, err
	}
	if change, err = ownFile(m, d, d.sysctlFile(), renderSysctl(d)); err != nil {
		return sdk.Plan{}, err
	}
	result.Add(change)
	if change != nil {
		if err := warnOfRemoved(source, d, &result); err != nil {
			return sdk.Plan{}, err
		}
	}
	for _, s := range shared {
		change, err := sdk.File(m, sdk.FileSpec{
			Path: s.path, Content: s.content, Mode: 0o644, Part: &sdk.Part{Name: d.name, Content: s.lines},
		})
		if err != nil {
			return sdk.Plan{}, err
		}
		if change != nil {
			change.Summary += ", so that it agrees with this document"
		}
		result.Add(change)
	}
	return result, nil
}

// planLive adds the changes of the running kernel. A missing key is an error only when no module has to be loaded.
func planLive(kernel machine.Kernel, d desired, result *sdk.Plan) error {
	load, err := modulesToLoad(kernel, d)
	if err != nil {
		return err
	}
	readings, err := observe(kernel, d.parameters)
	if err == nil && len(load) == 0 {
		err = unknown(kernel, readings)
	}
	if err != nil {
		return err
	}
	if err := warnOfNames(kernel, d, readings, result); err != nil {
		return err
	}
	var diff []string
	for _, r := range readings {
		switch {
		case r.missing && len(load) > 0:
			diff = append(diff, fmt.Sprintf("%s: (pending until the modules are loaded) -> %s\n", r.key, r.value))
		case r.missing: // ignoreMissing lists it
		case !sameValue(r.now, r.value):
			diff = append(diff, fmt.Sprintf("%s: %s -> %s\n", r.key, strings.Join(strings.Fields(r.now), " "), r.value))
		}
	}
	result.Add(loadModules(kernel, load), setValues(kernel, d.parameters, diff))
	return nil
}

// planImage adds the changes that the first boot makes.
func planImage(kernel machine.Kernel, d desired, result *sdk.Plan) {
	var diff []string
	for _, p := range d.parameters {
		diff = append(diff, fmt.Sprintf("%s: (known at first boot) -> %s\n", p.key, p.value))
	}
	result.Add(loadModules(kernel, d.modules), setValues(kernel, d.parameters, diff))
}

// setValues returns the change that sets the parameters; nil when diff, a line for each that differs, is empty.
func setValues(kernel machine.Kernel, parameters []parameter, diff []string) *sdk.Change {
	if len(diff) == 0 {
		return nil
	}
	plural := "s"
	if len(diff) == 1 {
		plural = ""
	}
	return &sdk.Change{
		ID: "parameters", NeedsLive: true,
		Summary: fmt.Sprintf("set %d kernel parameter%s", len(diff), plural), Diff: strings.Join(diff, ""),
		Do: func(_ context.Context, p sdk.Progress) error { return applyValues(kernel, parameters, p) },
	}
}

// warnOfRemoved warns about keys that only an earlier version of the document set: their previous value is unknown.
func warnOfRemoved(source files, d desired, result *sdk.Plan) error {
	data, err := source.ReadFile(d.sysctlFile())
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, p := range d.parameters {
		kept[string(p.key)] = true
	}
	for _, line := range sysctld.Parse(data, sysctld.Systemd) {
		if !kept[line.Key] && !line.Exclude {
			result.Warn("", sysctld.Key(line.Key).String()+": no longer in the document; its value stays until the next boot")
		}
	}
	return nil
}

// warnOfNames warns of a name that the running kernel does not have, and that no installed module brings. It is no error: in a container the modules
// of the machine are not visible, and a module can have another name.
func warnOfNames(kernel machine.Kernel, d desired, readings []reading, result *sdk.Plan) error {
	for _, r := range readings {
		table, ok := nameTables()[r.key]
		if !ok || r.missing || sameValue(r.now, r.value) || slices.Contains(strings.Fields(table.always), r.value) {
			continue
		}
		if now, err := kernel.Parameter(table.list); table.list != "" && err == nil && slices.Contains(strings.Fields(now), r.value) {
			continue
		}
		module := table.module + r.value
		brought := slices.ContainsFunc(d.modules, func(name string) bool { return canonicalModule(name) == canonicalModule(module) })
		state, err := kernel.Module(module)
		if err != nil {
			return fmt.Errorf("find module %s: %w", module, err)
		}
		if !brought && state == machine.ModuleAbsent {
			result.Warnings = append(result.Warnings, sdk.Warning{Field: r.field, Message: "the kernel has no " + path.Base(string(r.key)) + " of this name, and no module " + module +
				" is installed for it: install the modules of the running kernel, or use another name"})
		}
	}
	return nil
}
