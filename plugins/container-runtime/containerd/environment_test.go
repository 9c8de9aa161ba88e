package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/daemon"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/layout"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// windowsService is a machine whose service manager is that of Windows, with containerd running. The files of Windows
// are nowhere on Linux: of the activation only the environment is seen here.
func windowsService(t *testing.T, entries ...string) (machine.Machine, *machinetest.WindowsServices) {
	t.Helper()
	services := machinetest.NewWindowsServices()
	services.Put(settings.Service, machine.ServiceState{Active: "active", Sub: "running", InvocationID: "1"})
	if len(entries) > 0 {
		if err := services.SetEnvironment(settings.Service, entries); err != nil {
			t.Fatal(err)
		}
	}
	m := machinetest.New(t).Machine
	m.Target.OS, m.Services = "windows", services
	return m, services
}

func activationOf(t *testing.T, m machine.Machine, spec string) ([]*sdk.Change, error) {
	t.Helper()
	d := wanted(t, "windows", spec)
	if _, err := settingsFor(d, settings.Release{Major: 2, Minor: 1, Patch: 4}); err != nil {
		return nil, err
	}
	state, err := m.Services.State(t.Context(), settings.Service)
	if err != nil {
		return nil, err
	}
	i := daemon.Installation{Release: settings.Release{Major: 2, Minor: 1, Patch: 4}, State: state}
	a := activationFor(m, i, d, layout.Configuration{}, nil)
	a.Check, a.Healthy = nil, nil
	return sdk.Activate(t.Context(), m, a)
}

const (
	openProxy   = `{"proxy":{"http":"http://p.test:3128","https":"http://p.test:3128","noProxy":[".svc","10.0.0.0/8"]}}`
	secretProxy = `{"proxy":{"https":"http://p.test:3128","httpSecret":{"value":"http://u:c4n4ry@p.test"}}}`
)

// TestProxyOnWindows applies a document that is new, unchanged, changed and removed.
func TestProxyOnWindows(t *testing.T) {
	t.Parallel()
	m, services := windowsService(t, "PATH=C:\\bin", "TOKEN=c4n4ry")
	var shown strings.Builder
	for _, spec := range []string{openProxy, openProxy, `{"proxy":{"https":"http://q.test:3128"}}`, `{"logLevel":"info"}`} {
		changes, err := activationOf(t, m, spec)
		var p sdk.Plan
		p.Add(changes...)
		text := showPlan(p, err)
		containerdtest.Leak(t, "the plan", text)
		shown.WriteString("# " + spec + "\n" + text)
		for _, change := range changes {
			if err := change.Do(t.Context(), quiet{}); err != nil {
				t.Fatal(err)
			}
		}
		entries, err := services.Environment(settings.Service)
		if err != nil {
			t.Fatal(err)
		}
		shown.WriteString("-> " + containerdtest.Masked(strings.Join(entries, "\n-> ")) + "\n\n")
	}
	containerdtest.Golden(t, "plan/windows-proxy.txt", shown.String())
	if calls := services.Calls(); len(calls) != 1+2*3 {
		t.Errorf("calls %q", calls)
	}
}

// TestProxyOnWindowsRefuses what it must not do: put a secret where all can read it, change what others have set.
func TestProxyOnWindowsRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, spec string
		have       []string
		code       pluginv1.Code
		words      []string
	}{
		{"a secret", secretProxy, nil, pluginv1.CodeUnsupported, []string{"every user of the machine can read", "spec.proxy.httpSecret"}},
		{"what others have set", openProxy, []string{"Https_Proxy=http://c4n4ry@p.test"}, pluginv1.CodePrecondition, []string{"HTTPS_PROXY", `Services\containerd`}},
	} {
		m, services := windowsService(t, c.have...)
		changes, err := activationOf(t, m, c.spec)
		known := pluginv1.AsError(err)
		text := known.Error() + known.Hint
		for _, v := range known.Violations {
			text += v.Field + v.Message + v.Hint
		}
		containerdtest.Leak(t, c.name, text)
		if known.Code != c.code || len(changes) > 0 || slices.ContainsFunc(c.words, func(word string) bool { return !strings.Contains(text, word) }) {
			t.Errorf("%s: %d changes, %s", c.name, len(changes), text)
		}
		if after, err := services.Environment(settings.Service); err != nil || !slices.Equal(after, c.have) {
			t.Errorf("%s: something was changed: %q, %v", c.name, after, err)
		}
	}
}

// TestNoServiceOnWindows: what is not installed is a Precondition that says how it is installed there.
func TestNoServiceOnWindows(t *testing.T) {
	t.Parallel()
	m := machinetest.New(t).Machine
	m.Target.OS, m.Services = "windows", machinetest.NewWindowsServices()
	_, err := daemon.Find(context.Background(), m, "2.1")
	known := pluginv1.AsError(err)
	if known.Code != pluginv1.CodePrecondition || !strings.HasSuffix(known.Message, "there is no service containerd") ||
		!strings.Contains(known.Hint, "--register-service") {
		t.Errorf("%v (%s)", err, known.Hint)
	}
}
