package machinetest

import (
	"context"

	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/internal/crashtest"
	"github.com/machineadm/machineadm/sdk/machine"
)

// The types below are parts of a machine on which a run can be ended before each effect.

type commands struct {
	machine.Runner
	point *crashtest.Point
}

func (c commands) Run(ctx context.Context, command machine.Command) (machine.Result, error) {
	c.point.Effect()
	return c.Runner.Run(ctx, command)
}

type kernel struct {
	machine.Kernel
	point *crashtest.Point
}

func (k kernel) SetParameter(key, value string) error {
	k.point.Effect()
	return k.Kernel.SetParameter(key, value)
}

func (k kernel) LoadModule(ctx context.Context, name string) error {
	k.point.Effect()
	return k.Kernel.LoadModule(ctx, name)
}

type services struct {
	machine.Services
	point *crashtest.Point
}

// servicesAt keeps the environments of a service manager that has them.
func servicesAt(s machine.Services, p *crashtest.Point) machine.Services {
	if e, err := machine.EnvironmentsOf(s); err == nil {
		return environments{services{s, p}, e}
	}
	return services{s, p}
}

func (s services) SetEnabled(ctx context.Context, unit string, enabled bool) error {
	s.point.Effect()
	return s.Services.SetEnabled(ctx, unit, enabled)
}

func (s services) Do(ctx context.Context, unit string, a machine.Action) error {
	s.point.Effect()
	return s.Services.Do(ctx, unit, a)
}

func (s services) DaemonReload(ctx context.Context) error {
	s.point.Effect()
	return s.Services.DaemonReload(ctx)
}

type environments struct {
	services
	machine.Environments
}

func (e environments) SetEnvironment(unit string, entries []string) error {
	e.point.Effect()
	return e.Environments.SetEnvironment(unit, entries)
}

// quiet is a Progress that discards everything.
type quiet struct{}

func (quiet) Report(string)            {}
func (quiet) Warn(string, string)      {}
func (quiet) RequestReboot(sdk.Reboot) {}

type registry struct {
	machine.Registry
	point *crashtest.Point
}

func (r registry) SetValue(key, name string, data machine.RegistryData) error {
	r.point.Effect()
	return r.Registry.SetValue(key, name, data)
}

func (r registry) DeleteValue(key, name string) error {
	r.point.Effect()
	return r.Registry.DeleteValue(key, name)
}
