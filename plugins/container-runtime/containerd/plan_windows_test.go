package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"

	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// TestMain makes a copy of this program, by the name containerd.exe, one that does what the plugin asks of containerd
// 1.7: its version, its configuration as it understands it, which is the file itself, and a service.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "containerd.exe" {
		os.Exit(m.Run())
	}
	if err := containerd(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func containerd(args []string) error {
	if slices.Equal(args, []string{"--version"}) {
		_, err := fmt.Println("containerd github.com/containerd/containerd v1.7.24 88bf19b2")
		return err
	}
	if len(args) == 4 && args[0] == "--config" && slices.Equal(args[2:], []string{"config", "dump"}) {
		text, err := os.ReadFile(args[1])
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(text)
		return err
	}
	return svc.Run(settings.Service, program{})
}

type program struct{}

// Execute implements svc.Handler. With a configuration that says so it ends right away.
func (program) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	text, err := os.ReadFile(settings.PathsOf("windows").Config)
	if err == nil && strings.Contains(string(text), "die") {
		return true, 1
	}
	status <- svc.Status{State: svc.Running, Accepts: svc.AcceptStop}
	for request := range requests {
		if request.Cmd == svc.Stop {
			break
		}
	}
	return false, 0
}

// installService installs the program as the service containerd, where there is none.
func installService(t *testing.T) machine.Machine {
	t.Helper()
	home := filepath.Dir(settings.PathsOf("windows").Config)
	manager, err := mgr.Connect()
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		require.Missing(t, "the rights of an administrator")
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(home); !errors.Is(err, fs.ErrNotExist) {
		require.Missing(t, "a machine without "+home)
	}
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(home, "containerd.exe")
	if err := errors.Join(os.MkdirAll(home, 0o755), os.WriteFile(program, self, 0o755)); err != nil {
		t.Fatal(err)
	}
	s, err := manager.CreateService(settings.Service, program, mgr.Config{StartType: mgr.StartManual}, "--run-service")
	if err != nil {
		t.Fatal(err)
	}
	m, closeMachine, err := machine.New("", t.TempDir(), target.Target{OS: "windows", Architecture: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := errors.Join(m.Services.Do(context.Background(), settings.Service, machine.Stop), s.Delete(), s.Close(), manager.Disconnect(),
			closeMachine())
		// A program cannot be removed before its process is gone, which is a moment after its service has stopped.
		deadline := time.Now().Add(10 * time.Second)
		removal := os.RemoveAll(home)
		for ; removal != nil && time.Now().Before(deadline); removal = os.RemoveAll(home) {
			time.Sleep(50 * time.Millisecond)
		}
		if err := errors.Join(err, removal); err != nil {
			t.Error(err)
		}
	})
	return m
}

// TestPlanOnWindows is a document through its life, with a service manager, a registry and files that are real.
func TestPlanOnWindows(t *testing.T) {
	m := installService(t)
	apply := func(spec string) (sdk.Plan, error) {
		t.Helper()
		p, err := plan(t.Context(), m, containerdtest.ContainerRuntime(t, spec))
		for _, change := range p.Changes {
			err = errors.Join(err, change.Do(t.Context(), quiet{}))
		}
		return p, err
	}
	environment := func() string {
		t.Helper()
		environments, err := machine.EnvironmentsOf(m.Services)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := environments.Environment(settings.Service)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(entries, " ")
	}
	const spec = `{"logLevel":"warn","proxy":{"https":"http://p.test:3128"},"registries":{"r.test":{"mirrors":[{"url":"https://m.test"}]}}}`
	const set = "HTTPS_PROXY=http://p.test:3128 MACHINEADM_ADDED=HTTPS_PROXY"
	p, err := apply(spec)
	if err != nil || len(p.Changes) != 2 || environment() != set {
		t.Fatalf("%s%v, the environment is %q", showPlan(p, nil), err, environment())
	}
	if state, err := m.Services.State(t.Context(), settings.Service); err != nil || state.Active != "active" {
		t.Errorf("the service is %+v, %v", state, err)
	}
	if p, err := apply(spec); err != nil || len(p.Changes) != 0 {
		t.Errorf("the second time %s%v", showPlan(p, nil), err)
	}
	if p, err := apply(`{"logLevel":"warn","snapshotter":"die"}`); err == nil || environment() != set {
		t.Errorf("a service that does not start: %s%v, the environment is %q", showPlan(p, nil), err, environment())
	}
	if p, err := apply(`{"logLevel":"warn"}`); err != nil || environment() != "" {
		t.Errorf("no longer wanted: %s%v, the environment is %q", showPlan(p, nil), err, environment())
	}
}
