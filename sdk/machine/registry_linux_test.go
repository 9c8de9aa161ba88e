package machine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestNoRegistryOnLinux: neither the machine nor an image has a registry, or the domain of one.
func TestNoRegistryOnLinux(t *testing.T) {
	t.Parallel()
	live, closeLive, err := machine.New("", "", machinetest.Target())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, closeLive()) })
	image, _ := machinetest.NewImage(t)
	for _, m := range []machine.Machine{live, image} {
		_, err := m.Registry.Value(`SYSTEM\Setup`, "CmdLine")
		for _, err := range []error{
			err, m.Registry.SetValue(`SYSTEM\Setup`, "CmdLine", machine.RegistryText("canary")),
			m.Registry.DeleteValue(`SYSTEM\Setup`, "CmdLine"),
		} {
			require.ErrorIs(t, err, machine.ErrUnsupported)
			require.ErrorContains(t, err, `the registry value SYSTEM\Setup\CmdLine`)
			require.NotContains(t, err.Error(), "canary")
		}
		_, err = m.Domain()
		require.ErrorIs(t, err, machine.ErrUnsupported)
	}
}
