//go:build linux

package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/conformance"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// TestConformance has one case: the kit works on image roots, which Windows does not have, and elsewhere every document is
// Unsupported because of the platform.
func TestConformance(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), naming.Binary(v1alpha1.KindTimesync, "w32time"))
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	conformance.Run(t, binary, "testdata/conformance")
}
