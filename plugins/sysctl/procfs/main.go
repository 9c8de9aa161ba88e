// Command machineadm-sysctl-plugin-procfs serves Sysctl documents: it sets kernel parameters through /proc/sys and
// keeps them in /etc/sysctl.d, and loads kernel modules and keeps them in /etc/modules-load.d.
package main

import (
	"context"
	"fmt"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/sdk"
)

func main() {
	sdk.Main(sdk.Plugin{
		Name:    "procfs",
		Version: version.String(),
		OS:      []string{"linux"},
		Kinds:   []sdk.Kind{sdk.For(v1alpha1.APIVersion, v1alpha1.KindSysctl, sdk.PhasePreparation, plan).Validate(validate).Provides("sysctl:", "module:")},
		Fit:     fit,
	})
}

// fit returns active wherever /proc/sys can be read: every Linux system applies kernel parameters through it.
func fit(_ context.Context, m sdk.Machine) (sdk.Fitness, string, error) {
	if m.Offline() {
		return sdk.FitnessInstalled, "a Linux image; its kernel parameters are set at boot", nil
	}
	if _, err := m.Kernel.Parameter("kernel/ostype"); err != nil {
		return sdk.FitnessUnsupported, fmt.Sprintf("/proc/sys cannot be read: %v", err), nil
	}
	return sdk.FitnessActive, "kernel parameters are set through /proc/sys", nil
}
