//go:build linux

package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/machineadm/machineadm/contract/conformance"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), naming.Binary(v1alpha1.KindRemoteConfig, "kube"))
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	conformance.Run(t, binary, "testdata/conformance")
}
