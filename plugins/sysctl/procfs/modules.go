package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// modulesToLoad returns those that the kernel does not have yet; a module that it cannot get is a Precondition.
func modulesToLoad(kernel machine.Kernel, modules []string) ([]string, error) {
	var load, absent []string
	for _, module := range modules {
		state, err := kernel.Module(module)
		if err != nil {
			return nil, fmt.Errorf("look for module %s: %w", module, err)
		}
		switch state {
		case machine.ModuleLoaded, machine.ModuleBuiltIn:
		case machine.ModuleLoadable:
			load = append(load, module)
		default:
			present, err := witnessed(kernel, module)
			if err != nil {
				return nil, err
			}
			if !present {
				absent = append(absent, module)
			}
		}
	}
	if len(absent) > 0 {
		return nil, sdk.Precondition("the running kernel has no module "+strings.Join(absent, ", "),
			"install the modules of the running kernel (or boot the kernel that is installed), or correct spec.modules")
	}
	return load, nil
}

// witnessed says whether a module that cannot be found is there all the same, by a parameter that only it provides.
func witnessed(kernel machine.Kernel, module string) (bool, error) {
	key, known := witness(module)
	if !known {
		return false, nil
	}
	_, err := kernel.Parameter(string(key))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func loadModules(kernel machine.Kernel, modules []string) *sdk.Change {
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
		return err // it carries what the program said
	}
	return sdk.Precondition(err.Error(), "see what modprobe says about "+module+
		" by hand, and look for an install or blacklist line about it in modprobe.d")
}

// deferredModules stands for what the first boot does by itself, from the file in /etc/modules-load.d.
func deferredModules(kernel machine.Kernel, want desired) *sdk.Change {
	if len(want.modules) == 0 {
		return nil
	}
	return loadModules(kernel, want.modules)
}
