package machinetest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// daemon is a service manager whose units read /etc/d.conf when they start.
type daemon struct {
	*machinetest.Services
	files  *machine.FS
	loaded string
}

func (d *daemon) Do(ctx context.Context, unit string, a machine.Action) error {
	if data, err := d.files.ReadFile("/etc/d.conf"); a != machine.Stop && err == nil {
		d.loaded = string(data)
	}
	return d.Services.Do(ctx, unit, a)
}

func daemons(t *testing.T) func() *machinetest.Fixture {
	return func() *machinetest.Fixture {
		f := machinetest.New(t)
		f.WriteFiles(t, map[string]string{"/etc/d.conf": "old"})
		for _, unit := range []string{"d", "e"} {
			f.Services.Put(unit, machine.ServiceState{Active: "active", Sub: "running", InvocationID: unit})
		}
		d := &daemon{f.Services, f.Machine.FS, "old"}
		f.Machine.Services, f.Live = d, func() string { return d.loaded }
		return f
	}
}

func configured() sdk.FileSpec {
	return sdk.FileSpec{Path: "/etc/d.conf", Content: []byte("new"), Mode: 0o644}
}

func activation(ctx context.Context, m machine.Machine) (sdk.Plan, error) {
	var plan sdk.Plan
	changes, err := sdk.Activate(ctx, m, sdk.Activation{
		Unit: "d.service", Conflicts: []string{"e.service"}, Enable: true, Files: []sdk.FileSpec{configured()},
		Check: func(context.Context, machine.Machine, map[string]string) error { return nil },
	})
	plan.Add(changes...)
	return plan, err
}

func TestCrashOfAnActivation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { machinetest.Crash(t, daemons(t), activation) })
}

// TestCrashOfAnEnvironment: also what a service manager stores is an effect.
func TestCrashOfAnEnvironment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		machinetest.Crash(t, func() *machinetest.Fixture {
			f := machinetest.New(t)
			windows := machinetest.NewWindowsServices()
			windows.Put("d", machine.ServiceState{Active: "active", InvocationID: "1"})
			f.Machine.Services, f.Machine.Target.OS = windows, "windows"
			return f
		}, func(ctx context.Context, m machine.Machine) (plan sdk.Plan, err error) {
			changes, err := sdk.Activate(ctx, m, sdk.Activation{Unit: "d", Environment: &sdk.ServiceEnvironment{
				Variables: []sdk.Variable{{Name: "P", Value: "x"}},
			}})
			plan.Add(changes...)
			return plan, err
		})
	})
}

// TestCrashFinds plans that do not converge after a crash.
func TestCrashFinds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(context.Context, machine.Machine) error
		want string
	}{
		"a restart that is forgotten": {func(ctx context.Context, m machine.Machine) error {
			err := m.FS.WriteFile("/etc/d.conf", []byte("new"), 0o644)
			if err == nil {
				err = m.Services.Do(ctx, "d", machine.Restart)
			}
			return err
		}, "ended before the effects [1]: the outcome is another one (<nil>)"},
		"a record that is left": {func(_ context.Context, m machine.Machine) error {
			name := "done"
			if _, err := m.State.Load("begun"); err == nil {
				name = "again"
			}
			if err := m.State.Save("begun", nil); err != nil {
				return err
			}
			if err := m.FS.WriteFile("/etc/d.conf", []byte("new"), 0o644); err != nil {
				return err
			}
			return m.State.Save(name, nil)
		}, "ended before the effects [1]: the outcome is another one (<nil>)"},
		"what is planned again": {func(context.Context, machine.Machine) error { return nil }, "without a crash: afterwards 1 changes are planned"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := &recorder{TB: t}
			machinetest.Crash(found, daemons(t), func(_ context.Context, m machine.Machine) (plan sdk.Plan, err error) {
				change, err := sdk.File(m, configured())
				if change != nil {
					plan.Add(&sdk.Change{ID: "x", Summary: "x", Do: func(ctx context.Context, _ sdk.Progress) error { return c.do(ctx, m) }})
				}
				return plan, err
			})
			require.NotEmpty(t, found.failures)
			assert.Contains(t, found.failures[0], c.want)
		})
	}
}

// TestCrashEndsAtEachEffect: a run meets each effect once, and none happens after the end.
func TestCrashEndsAtEachEffect(t *testing.T) {
	t.Parallel()
	var seen []string
	machinetest.Crash(t, func() *machinetest.Fixture {
		f := machinetest.New(t)
		f.Kernel.Parameters["vm/x"], f.Kernel.Modules["m"] = "0", machine.ModuleLoadable
		f.Commands.On("true", machine.Result{})
		f.Services.Put("d", machine.ServiceState{})
		f.Live = func() string {
			seen = append(seen, fmt.Sprint(len(f.Kernel.Writes()), len(f.Kernel.Loads()), len(f.Commands.Lines()), len(f.Services.Calls())))
			return ""
		}
		return f
	}, func(_ context.Context, m machine.Machine) (plan sdk.Plan, err error) {
		state, err := m.Services.State(t.Context(), "d")
		if !state.Enabled {
			plan.Add(&sdk.Change{ID: "x", Summary: "x", Do: func(ctx context.Context, _ sdk.Progress) error {
				_, err := m.Commands.Run(ctx, machine.Command{Name: "true"})
				for _, step := range []func() error{
					func() error { return m.Kernel.SetParameter("vm/x", "1") },
					func() error { return m.Kernel.LoadModule(ctx, "m") },
					func() error { return m.Services.Do(ctx, "d", machine.Start) },
					func() error { return m.Services.SetEnabled(ctx, "d", true) },
				} {
					if err == nil {
						err = step()
					}
				}
				return err
			}})
		}
		return plan, err
	})
	assert.Equal(t, "1 1 1 2; 1 1 1 2; 1 1 2 2; 2 1 2 2; 2 1 2 2; 2 1 2 3", strings.Join(seen, "; "))
}
