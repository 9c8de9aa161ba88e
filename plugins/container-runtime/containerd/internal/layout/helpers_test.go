package layout

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// configured is the configuration that these settings make of the present one.
func configured(m sdk.Machine, r settings.Release, desired []settings.Setting, imports ...string) (Configuration, error) {
	now, err := Read(m, settings.PathsOf(m.Target.OS).Config, r, imports)
	if err != nil {
		return Configuration{}, err
	}
	return Configure(m, r, now, desired)
}

// wanted is a valid document with this spec.
func wanted(t testing.TB, os, spec string) settings.Desired {
	t.Helper()
	d, violations := settings.Resolve(containerdtest.ContainerRuntime(t, spec), os)
	require.Empty(t, violations)
	return d
}

// releases are those that the goldens pin.
func releases() []settings.Release {
	return []settings.Release{
		{Major: 1, Minor: 6, Patch: 20}, {Major: 1, Minor: 7, Patch: 24}, {Major: 2}, {Major: 2, Minor: 1, Patch: 4}, {Major: 2, Minor: 3, Patch: 7},
	}
}
