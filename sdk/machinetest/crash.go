package machinetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/atomicfile"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/internal/crashtest"
	"github.com/machineadm/machineadm/sdk/machine"
)

// Crash requires that a plan converges wherever its process ends. It ends a run of the plan and its changes before each
// effect in turn: a change of a file or of the state, a command, an operation of a service, of the kernel or of the registry. Then it runs
// the plan again, which must leave the machine as a run without a crash leaves it, with the same success or failure, and
// after success nothing to do.
//
// build returns a new machine on each call, always in the same state. Compared are its files, the State of the plugin, the
// services without process and invocation, the kernel, the registry and Live. Within synctest.Test pauses take no time.
func Crash(t testing.TB, build func() *Fixture, plan func(context.Context, machine.Machine) (sdk.Plan, error)) {
	t.Helper()
	crashtest.Everywhere(t, 1, func() crashtest.Subject {
		f := build()
		return crashtest.Subject{
			Run:   func(p *crashtest.Point) (int, error) { return f.run(t.Context(), p, plan) },
			State: func() string { return f.state(t) },
		}
	})
}

// run plans and makes the changes, as Apply does, after it has removed what a killed run left beside claimed files, as the
// host does.
func (f *Fixture) run(
	ctx context.Context, p *crashtest.Point, plan func(context.Context, machine.Machine) (sdk.Plan, error),
) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // also when the run ends early: its other goroutines stop waiting
	for _, c := range f.Claims() {
		if path, _, ok := pluginv1.ClaimedFile(c.ID); ok {
			dir, base := filepath.Split(path)
			if err := f.Machine.FS.Remove(dir + atomicfile.CandidateName(base)); err != nil {
				return 0, err
			}
		}
	}
	m := f.Machine
	m.FS, m.State = m.FS.Before(p.Effect), m.State.Before(p.Effect)
	m.Commands, m.Kernel, m.Services = commands{m.Commands, p}, kernel{m.Kernel, p}, servicesAt(m.Services, p)
	m.Registry = registry{m.Registry, p}
	planned, err := plan(ctx, m)
	if err != nil {
		return 0, err
	}
	for _, c := range planned.Changes {
		if err := c.Do(ctx, quiet{}); err != nil {
			return len(planned.Changes), err
		}
	}
	return len(planned.Changes), nil
}

// state describes the machine.
func (f *Fixture) state(t testing.TB) string {
	t.Helper()
	text := Tree(t, f.Root)
	if _, err := os.Stat(f.stateDirectory); !errors.Is(err, fs.ErrNotExist) {
		text += "state:\n" + Tree(t, f.stateDirectory)
	}
	for _, part := range []any{f.Machine.Services, f.Machine.Kernel, f.Machine.Registry} {
		if part, ok := part.(interface{ snapshot() any }); ok {
			data, err := json.MarshalIndent(part.snapshot(), "", " ")
			if err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprintf("%s\n", data)
		}
	}
	if f.Live != nil {
		text += f.Live()
	}
	return text
}

func (s *Services) snapshot() any {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	units := map[string]machine.ServiceState{}
	for name, state := range s.units {
		state.MainPID, state.InvocationID = 0, ""
		units[name] = state
	}
	return units
}

func (s *WindowsServices) snapshot() any {
	return []any{s.Services.snapshot(), s.environments}
}

func (k *Kernel) snapshot() any {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return []any{k.Parameters, k.Modules}
}

func (r *Registry) snapshot() any {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.values
}
