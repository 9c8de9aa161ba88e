// Package kit runs the conformance kit on the provider in the current directory.
package kit

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/machineadm/machineadm/contract/conformance"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// Run builds the provider and runs its cases.
func Run(t *testing.T, provider string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), naming.Binary(v1alpha1.KindTimesync, provider))
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	conformance.Run(t, binary, "testdata/conformance")
}
