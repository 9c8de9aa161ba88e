package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// The parts shown in docs/writing-a-plugin.md, compiled and run.

func planHosts(_ context.Context, m sdk.Machine, want []byte) (sdk.Plan, error) {
	var plan sdk.Plan
	const hosts = "/etc/hosts"
	content, err := m.FS.ReadFile(hosts)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return plan, err
	}
	spec := sdk.FileSpec{
		Path: hosts, Content: withOurLines(content, want), Mode: 0o644, Part: &sdk.Part{Name: "node", Content: want},
	}
	if info, err := m.FS.Stat(hosts); err == nil {
		spec.Mode, spec.Owner = info.Mode.Perm(), &sdk.Owner{UID: info.UID, GID: info.GID}
	}
	change, err := sdk.File(m, spec)
	plan.Add(change)
	return plan, err
}

func withOurLines(content, ours []byte) []byte {
	if bytes.Contains(content, ours) {
		return content
	}
	return append(content, ours...)
}

func chronyPlugin() sdk.Plugin {
	return sdk.Plugin{
		Fit: func(ctx context.Context, m sdk.Machine) (sdk.Fitness, string, error) {
			state, err := m.Services.State(ctx, "chrony.service")
			if err != nil || !state.Exists {
				return sdk.FitnessAbsent, "chrony is not installed", err
			}
			return sdk.FitnessInstalled, "chrony is installed", nil
		},
	}
}

func TestPartsOfTheTutorial(t *testing.T) {
	t.Parallel()
	fixture := machinetest.New(t)
	ours := []byte("192.0.2.1 api\n")
	apply := func() int {
		t.Helper()
		plan, err := planHosts(t.Context(), fixture.Machine, ours)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range plan.Changes {
			if err := c.Do(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		return len(plan.Changes)
	}
	if err := fixture.Machine.FS.WriteFile("/etc/hosts", []byte("127.0.0.1 localhost\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if n := apply(); n != 1 {
		t.Errorf("%d changes", n)
	}
	content, err := fixture.Machine.FS.ReadFile("/etc/hosts")
	info, statErr := fixture.Machine.FS.Stat("/etc/hosts")
	if err := errors.Join(err, statErr); err != nil {
		t.Fatal(err)
	}
	if string(content) != "127.0.0.1 localhost\n192.0.2.1 api\n" || info.Mode.Perm() != 0o640 {
		t.Errorf("%v %q", info.Mode, content)
	}
	if n := apply(); n != 0 {
		t.Errorf("%d changes the second time", n)
	}
	fit := chronyPlugin().Fit
	if got, why, err := fit(t.Context(), fixture.Machine); got != sdk.FitnessAbsent || err != nil {
		t.Errorf("%v %s %v", got, why, err)
	}
	fixture.Services.Put("chrony.service", machine.ServiceState{Exists: true})
	if got, why, err := fit(t.Context(), fixture.Machine); got != sdk.FitnessInstalled || err != nil {
		t.Errorf("%v %s %v", got, why, err)
	}
}

// openrc is a service manager other than systemd; its other methods are left out.
type openrc struct {
	machine.Services
	commands machine.Runner
}

func (o openrc) State(ctx context.Context, unit string) (machine.ServiceState, error) {
	result, err := o.commands.Run(ctx, machine.Command{Name: "rc-service", Args: []string{unit, "status"}})
	return machine.ServiceState{Exists: true, Active: strings.TrimSpace(string(result.Stdout))}, err
}

func planOpenRC(ctx context.Context, m sdk.Machine) (machine.ServiceState, error) {
	if !m.Offline() {
		m.Services = openrc{commands: m.Commands}
	}
	return m.Services.State(ctx, "chronyd")
}

func TestServicesOfAnotherInitSystem(t *testing.T) {
	t.Parallel()
	fixture := machinetest.New(t)
	fixture.Commands.On("rc-service chronyd status", machine.Result{Stdout: []byte("started\n")})
	state, err := planOpenRC(t.Context(), fixture.Machine)
	if err != nil || state.Active != "started" {
		t.Errorf("%+v %v", state, err)
	}
}
