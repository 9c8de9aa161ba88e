package machine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows"

	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/sdk/machine"
)

// TestDomain: Windows always answers. Wine is in no domain: it answers with a work group, or that the status is unknown.
func TestDomain(t *testing.T) {
	m, closeMachine, err := machine.New("", "", target.Target{OS: "windows"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, closeMachine()) })
	domain, err := m.Domain()
	wine := windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
	if wine && err != nil {
		assert.ErrorContains(t, err, "unknown")
	} else {
		require.NoError(t, err)
	}
	if wine {
		assert.Empty(t, domain)
	}
}
