package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// validate finds what is wrong with a document by itself.
func validate(doc v1alpha1.Sysctl) []sdk.Violation {
	_, violations := resolve(doc, profiles())
	return violations
}

// claim says what the document owns beside its files, whether or not the machine has it already.
func claim(m sdk.Machine, want desired) {
	for _, p := range want.parameters {
		m.Claim("sysctl:"+p.key.String(), p.field, strings.Join(strings.Fields(p.value), " "))
	}
	for _, module := range want.modules {
		m.Claim("module:"+canonicalModule(module), "", "true")
	}
}

// plan decides what is missing. The order of the changes is the safe one: modules bring parameters, and the file that
// a boot obeys is written only after the kernel has taken every value.
func plan(_ context.Context, m sdk.Machine, doc v1alpha1.Sysctl) (sdk.Plan, error) {
	want, violations := resolve(doc, profiles())
	if len(violations) > 0 {
		return sdk.Plan{}, sdk.InvalidConfig(violations...)
	}
	claim(m, want)
	source := files{m.FS}
	shared, err := sharedFiles(source, want)
	if err != nil {
		return sdk.Plan{}, err
	}
	if err := checkBoot(corrected{source, shared}, want); err != nil {
		return sdk.Plan{}, err
	}
	result := sdk.Plan{Warnings: want.warnings}
	change, err := ownFile(m, want, want.modulesFile(), renderModules(want))
	if err != nil {
		return sdk.Plan{}, err
	}
	result.Add(change)
	if m.Offline() {
		result.Add(deferredModules(m.Kernel, want), deferredValues(m.Kernel, want))
	} else if err := planLive(m.Kernel, want, &result); err != nil {
		return sdk.Plan{}, err
	}
	if change, err = ownFile(m, want, want.sysctlFile(), renderSysctl(want)); err != nil {
		return sdk.Plan{}, err
	}
	result.Add(change)
	if change != nil {
		if err := warnOfDropped(source, want, &result); err != nil {
			return sdk.Plan{}, err
		}
	}
	for _, s := range shared {
		change, err := sdk.File(m, sdk.FileSpec{
			Path: s.path, Content: s.content, Mode: 0o644, Part: &sdk.Part{Name: want.name, Content: s.shared},
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

func planLive(kernel machine.Kernel, want desired, result *sdk.Plan) error {
	load, err := modulesToLoad(kernel, want.modules)
	if err != nil {
		return err
	}
	readings, err := observe(kernel, want.parameters)
	if err != nil {
		return err
	}
	if len(load) == 0 {
		if err := unknown(kernel, readings); err != nil {
			return err
		}
	}
	if len(load) > 0 {
		result.Add(loadModules(kernel, load))
	}
	var diff strings.Builder
	differ := 0
	for _, r := range readings {
		switch {
		case r.missing && len(load) > 0:
			fmt.Fprintf(&diff, "%s: (pending until the modules are loaded) -> %s\n", r.key, r.value)
		case r.missing:
			result.Warn(r.field, r.key.String()+": this kernel does not have it, and ignoreMissing says to go on")
			continue
		case sameValue(r.now, r.value):
			continue
		default:
			fmt.Fprintf(&diff, "%s: %s -> %s\n", r.key, strings.Join(strings.Fields(r.now), " "), r.value)
		}
		differ++
	}
	if differ > 0 {
		result.Add(setValues(kernel, want.parameters, fmt.Sprintf("set %s", count(differ, "kernel parameter")), diff.String()))
	}
	return nil
}

// warnOfDropped names what an earlier version of the document set: nobody knows the value of before that.
func warnOfDropped(source sysctld.Source, want desired, result *sdk.Plan) error {
	data, err := contentOf(source, want.sysctlFile())
	if err != nil {
		return err
	}
	lines, _ := sysctld.Parse(data, sysctld.Systemd)
	kept := map[string]bool{}
	for _, p := range want.parameters {
		kept[string(p.key)] = true
	}
	for _, line := range lines {
		if !kept[line.Key] && !line.Exclude {
			result.Warn("", sysctld.Key(line.Key).String()+": no longer in the document; its value stays until the next boot")
		}
	}
	return nil
}

func setValues(kernel machine.Kernel, parameters []parameter, summary, diff string) *sdk.Change {
	return &sdk.Change{
		ID: "parameters", Summary: summary, Diff: diff, NeedsLive: true,
		Do: func(_ context.Context, p sdk.Progress) error { return applyValues(kernel, parameters, p) },
	}
}

// deferredValues stands for what the first boot's run will do: an image has no kernel to ask.
func deferredValues(kernel machine.Kernel, want desired) *sdk.Change {
	if len(want.parameters) == 0 {
		return nil
	}
	var diff strings.Builder
	for _, p := range want.parameters {
		fmt.Fprintf(&diff, "%s: (known at first boot) -> %s\n", p.key, p.value)
	}
	return setValues(kernel, want.parameters, "set "+count(len(want.parameters), "kernel parameter"), diff.String())
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
