//go:build linux

package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/machineadm/machineadm/contract/conformance"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "machineadm-remote-configuration-provider-shelf")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	conformance.Run(t, binary, "testdata/conformance")
}
