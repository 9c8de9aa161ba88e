//go:build linux

package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/machineadm/machineadm/contract/conformance"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "machineadm-sysctl-plugin-filesonly")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	conformance.Run(t, binary, "testdata/conformance")
}

// A running kernel would keep its old values until the next boot, and a success would hide that.
func TestARunningMachineIsRefused(t *testing.T) {
	t.Parallel()
	m := machinetest.New(t).Machine
	if fitness, reason, err := fit(t.Context(), m); fitness != sdk.FitnessUnsupported || reason == "" || err != nil {
		t.Errorf("fitness %v, %q, error %v", fitness, reason, err)
	}
	var document v1alpha1.Sysctl
	document.Spec.Parameters = map[string]v1alpha1.IntOrString{"kernel.panic": "10"}
	_, err := plan(t.Context(), m, document)
	var e *pluginv1.Error
	if !errors.As(err, &e) || e.Code != pluginv1.CodeUnsupported || len(e.Violations) != 0 {
		t.Errorf("error %v, want Unsupported without a field", err)
	}
}
