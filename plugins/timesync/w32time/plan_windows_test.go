package main

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"

	"github.com/machineadm/machineadm/contract/target"
	prerequisite "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// asService runs this program as the service.
const asService = "--run-service"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asService {
		if err := svc.Run(serviceName, timeService{}); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// timeService is the service. It ends right away with the server die, as W32Time does with values that it cannot read.
type timeService struct{}

// Execute implements svc.Handler.
func (timeService) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	if text, err := stringValue("Parameters", "NtpServer"); err != nil || text == "die,0x8" {
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

func stringValue(key, name string) (string, error) {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, serviceKey+key, registry.QUERY_VALUE)
	if err != nil {
		return "", err
	}
	text, _, err := k.GetStringValue(name)
	return text, errors.Join(err, k.Close())
}

// install installs this program as the service W32Time with the keys of Windows, where there is none. The machine is real but
// for its domain and its programs.
func install(t *testing.T) machine.Machine {
	t.Helper()
	manager, err := mgr.Connect()
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		prerequisite.Missing(t, "the rights of an administrator")
	}
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, manager.Disconnect()) })
	if existing, err := manager.OpenService(serviceName); err == nil {
		require.NoError(t, existing.Close())
		prerequisite.Missing(t, "a machine without "+serviceName)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	// As on Windows, the service can share its process.
	config := mgr.Config{StartType: mgr.StartManual, ServiceType: windows.SERVICE_WIN32_SHARE_PROCESS}
	service, err := manager.CreateService(serviceName, self, config, asService)
	require.NoError(t, err)
	m, closeMachine, err := machine.New("", t.TempDir(), target.Target{OS: "windows"})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, m.Services.Do(context.Background(), serviceName, machine.Stop))
		assert.NoError(t, errors.Join(service.Delete(), service.Close(), closeMachine()))
	})
	for _, key := range []string{"Config", "Parameters", "TimeProviders", `TimeProviders\NtpClient`} {
		k, _, err := registry.CreateKey(registry.LOCAL_MACHINE, serviceKey+key, registry.SET_VALUE)
		require.NoError(t, err)
		if key == "Parameters" {
			require.NoError(t, k.SetStringValue("NtpServer", "time.windows.com,0x8"))
		}
		require.NoError(t, k.Close())
		t.Cleanup(func() { assert.NoError(t, registry.DeleteKey(registry.LOCAL_MACHINE, serviceKey+key)) })
	}
	commands := machinetest.NewRunner(t)
	commands.On("w32tm /query /status", output(t, "status-en"))
	m.Commands, m.Domain = commands, func() (string, error) { return "", nil }
	return m
}

// TestPlanOnWindows is a document through its life, with a real registry and service manager.
func TestPlanOnWindows(t *testing.T) {
	m := install(t)
	ids := func(spec string) []string {
		t.Helper()
		p, err := plan(t.Context(), m, document(t, spec))
		require.NoError(t, err)
		var all []string
		for _, change := range p.Changes {
			all = append(all, change.ID)
		}
		return all
	}
	peers := func() string {
		t.Helper()
		text, err := stringValue("Parameters", "NtpServer")
		require.NoError(t, err)
		return text
	}
	const spec = `{"servers":[{"address":"127.0.0.1","minPoll":6,"maxPoll":10}],"fallback":["ntp.test"],
		"makeStep":{"threshold":"1s","limit":-1},"waitForSync":{}}`
	require.Equal(t, []string{"activate:W32Time", "synchronize"}, ids(spec))
	p, err := plan(t.Context(), m, document(t, spec))
	require.NoError(t, err)
	require.ErrorContains(t, p.Changes[0].Do(t.Context(), quiet{}), "none of the servers can be used")
	require.Equal(t, "time.windows.com,0x8", peers())

	require.NoError(t, apply(t, m, spec))
	require.Equal(t, "127.0.0.1,0x8 ntp.test,0xa", peers())
	correction, err := m.Registry.Value(serviceKey+"Config", "MaxNegPhaseCorrection")
	require.NoError(t, err)
	require.Equal(t, machine.RegistryNumber(0xffffffff), correction)
	state, err := m.Services.State(t.Context(), serviceName)
	require.NoError(t, err)
	require.Equal(t, []any{"active", true, ""}, []any{state.Active, state.Enabled, state.InvocationID})
	require.Empty(t, ids(spec))

	// The service does not start with this server: the former values are restored, and it runs with them.
	err = apply(t, m, `{"servers":[{"address":"die"}]}`)
	require.ErrorContains(t, err, "the old configuration was restored, and W32Time runs with it")
	require.Equal(t, "127.0.0.1,0x8 ntp.test,0xa", peers())
	require.Empty(t, ids(spec))
}
