package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// modulesToLoad returns the modules that are not loaded; one that the kernel cannot load is a Precondition.
func modulesToLoad(kernel machine.Kernel, d desired) ([]string, error) {
	var load []string
	var absent []sdk.Violation
	for _, module := range d.modules {
		state, err := kernel.Module(module)
		if err != nil {
			return nil, fmt.Errorf("find module %s: %w", module, err)
		}
		switch state {
		case machine.ModuleLoaded, machine.ModuleBuiltIn:
		case machine.ModuleLoadable:
			load = append(load, module)
		default:
			present, err := builtIn(kernel, module)
			if err != nil {
				return nil, err
			}
			if !present {
				absent = append(absent, sdk.Violation{
					Field: d.moduleFields[canonicalModule(module)], Message: "the running kernel has no module " + module,
					Hint: "install the modules of the running kernel (or boot the kernel that is installed), or correct the field",
				})
			}
		}
	}
	if len(absent) > 0 {
		return nil, sdk.Preconditions(absent...)
	}
	return load, nil
}

// builtIn reports whether the kernel has a module that is not listed, by a parameter that only this module provides.
// Without a module directory, as in a container, built-in modules are not listed.
func builtIn(kernel machine.Kernel, module string) (bool, error) {
	key := map[string]string{
		"br_netfilter": "net/bridge/bridge-nf-call-iptables", "nf_conntrack": "net/netfilter/nf_conntrack_max",
	}[canonicalModule(module)]
	if key == "" {
		return false, nil
	}
	_, err := kernel.Parameter(key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// moduleOf returns the module that provides a parameter, for a hint. Source: kernel documentation, networking.
func moduleOf(key sysctld.Key) string {
	for _, m := range []struct{ prefix, module string }{
		{"net/bridge/", "br_netfilter"},
		{"net/netfilter/nf_conntrack_", "nf_conntrack"},
		{"net/ipv4/vs/", "ip_vs"},
	} {
		if strings.HasPrefix(string(key), m.prefix) {
			return "the module " + m.module
		}
	}
	return "the module that provides it"
}

// loadModules returns the change that loads modules; nil without modules.
func loadModules(kernel machine.Kernel, modules []string) *sdk.Change {
	if len(modules) == 0 {
		return nil
	}
	return &sdk.Change{
		ID: "modules", NeedsLive: true,
		Summary: "load " + strings.Join(modules, ", "),
		Diff:    "+" + strings.Join(modules, "\n+") + "\n",
		Do: func(ctx context.Context, p sdk.Progress) error {
			for _, module := range modules {
				if err := loadModule(ctx, kernel, module, p); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func loadModule(ctx context.Context, kernel machine.Kernel, module string, p sdk.Progress) error {
	p.Report("loading " + module)
	err := kernel.LoadModule(ctx, module)
	if err == nil || ctx.Err() != nil || errors.Is(err, machine.ErrOffline) {
		return err
	}
	if _, ok := errors.AsType[*machine.CommandError](err); ok {
		return err // it carries modprobe's output
	}
	return sdk.Precondition(err.Error(),
		"run modprobe "+module+" by hand, and check modprobe.d for an install or blacklist line about it")
}
