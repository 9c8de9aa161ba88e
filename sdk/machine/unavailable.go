package machine

import (
	"context"
	"fmt"
)

// unavailable implements Runner, Kernel, Services and Registry where there are none: every method returns err.
type unavailable struct{ err error }

func (u unavailable) failed(action, name string) error {
	return fmt.Errorf("%s %s: %w", action, printable(name), u.err)
}

func (u unavailable) Run(_ context.Context, c Command) (Result, error) {
	return Result{}, u.failed("run", c.Name)
}

func (u unavailable) Find(name string) (string, error) { return "", u.failed("find", name) }

func (u unavailable) domain() (string, error) {
	return "", u.failed("query", "the domain of the machine")
}

func (u unavailable) Parameter(key string) (string, error) {
	return "", u.failed("read kernel parameter", key)
}

func (u unavailable) SetParameter(key, _ string) error { return u.failed("set kernel parameter", key) }

func (u unavailable) Module(name string) (ModuleState, error) {
	return ModuleAbsent, u.failed("query kernel module", name)
}

func (u unavailable) LoadModule(_ context.Context, name string) error {
	return u.failed("load kernel module", name)
}

func (u unavailable) State(_ context.Context, unit string) (ServiceState, error) {
	return ServiceState{}, u.failed("query", unit)
}

func (u unavailable) States(ctx context.Context, units ...string) ([]ServiceState, error) {
	return statesOf(ctx, u, units)
}

func (u unavailable) SetEnabled(_ context.Context, unit string, enabled bool) error {
	return u.failed(enabling(enabled), unit)
}

func (u unavailable) Do(_ context.Context, unit string, a Action) error {
	return u.failed(a.String(), unit)
}

func (u unavailable) DaemonReload(context.Context) error { return u.failed("reload", "unit files") }

func (u unavailable) Value(key, name string) (RegistryData, error) {
	return RegistryData{}, u.failed("read the registry value", key+`\`+name)
}

func (u unavailable) SetValue(key, name string, _ RegistryData) error {
	return u.failed("set the registry value", key+`\`+name)
}

func (u unavailable) DeleteValue(key, name string) error {
	return u.failed("delete the registry value", key+`\`+name)
}
