package machine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc/mgr"

	"github.com/machineadm/machineadm/sdk/machine"
)

// TestInvocationID changes with a restart, and is empty where the process can outlive one.
func TestInvocationID(t *testing.T) {
	const name = "machineadm-test-invocation"
	services, _ := realService(t, name)
	restarted := func() machine.ServiceState {
		t.Helper()
		require.NoError(t, services.Do(t.Context(), name, machine.Restart))
		state, err := services.State(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, "active", state.Active)
		return state
	}
	first, second := restarted().InvocationID, restarted().InvocationID
	require.NotEmpty(t, first)
	require.NotEqual(t, first, second)

	manager, err := mgr.Connect()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, manager.Disconnect()) })
	service, err := manager.OpenService(name)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, service.Close()) })
	const same = windows.SERVICE_NO_CHANGE
	require.NoError(t, windows.ChangeServiceConfig(service.Handle, windows.SERVICE_WIN32_SHARE_PROCESS, same, same, nil, nil, nil, nil, nil, nil, nil))
	require.Empty(t, restarted().InvocationID)
}

// TestSetEnabled: the start type is read back, and nothing else changes.
func TestSetEnabled(t *testing.T) {
	const name = "machineadm-test-enabled"
	services, _ := realService(t, name)
	before, err := services.State(t.Context(), name)
	require.NoError(t, err)
	require.Contains(t, before.Fragment, asService)
	for _, enabled := range []bool{true, false, true} {
		require.NoError(t, services.SetEnabled(t.Context(), name, enabled))
		state, err := services.State(t.Context(), name)
		require.NoError(t, err)
		before.Enabled, before.FileState = enabled, map[bool]string{true: "automatic", false: "manual"}[enabled]
		require.Equal(t, before, state)
	}
}
