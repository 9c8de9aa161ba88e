// Command machineadm-kubernetes-node-plugin-kubeadm serves KubernetesNode documents: it makes the machine a node of a
// Kubernetes cluster with kubeadm, once.
package main

import (
	"context"
	"errors"
	"io/fs"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/sdk"
)

func main() {
	sdk.Main(sdk.Plugin{
		Name:    "kubeadm",
		Version: version.String(),
		OS:      []string{"linux", "windows"},
		Kinds:   []sdk.Kind{sdk.For(v1alpha1.APIVersion, v1alpha1.KindKubernetesNode, sdk.PhaseProvisioning, plan).Provides("file:")},
		Fit:     fit,
	})
}

// fit reports whether kubeadm is installed.
func fit(_ context.Context, m sdk.Machine) (sdk.Fitness, string, error) {
	if m.Offline() {
		return sdk.FitnessInstalled, "an image; kubeadm is looked for at first boot", nil
	}
	switch _, err := m.Commands.Find("kubeadm"); {
	case errors.Is(err, fs.ErrNotExist):
		return sdk.FitnessAbsent, "kubeadm is not installed", nil
	case err != nil:
		return sdk.FitnessAbsent, "", err
	}
	return sdk.FitnessInstalled, "kubeadm is installed", nil
}
