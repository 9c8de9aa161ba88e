// Command machineadm-container-runtime-plugin-containerd serves ContainerRuntime documents: it configures containerd in
// the form that the installed release reads, and makes its service run with that configuration.
package main

import (
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/daemon"
	"github.com/machineadm/machineadm/sdk"
)

func main() {
	sdk.Main(sdk.Plugin{
		Name:    "containerd",
		Version: version.String(),
		OS:      []string{"linux", "windows"},
		Kinds: []sdk.Kind{
			sdk.For(v1alpha1.APIVersion, v1alpha1.KindContainerRuntime, sdk.PhasePreparation, plan).Provides("unit:containerd"),
		},
		Fit: daemon.Fit,
	})
}
