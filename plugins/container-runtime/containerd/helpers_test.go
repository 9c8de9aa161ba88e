package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
)

// wanted is a valid document with this spec.
func wanted(t testing.TB, os, spec string) settings.Desired {
	t.Helper()
	d, violations := settings.Resolve(containerdtest.ContainerRuntime(t, spec), os)
	require.Empty(t, violations)
	return d
}
