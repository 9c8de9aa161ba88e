package ready

import (
	"context"
	"strings"

	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// runtime leaves the named pipe of the container runtime to kubeadm.
func (*checker) runtime(context.Context) error { return nil }

// Runtime is the claim of a document that runs the container runtime.
func Runtime(string) string { return "unit:containerd#running" }

// Service is the name of the service of the container runtime.
func Service(string) string { return "containerd" }

// Images has nothing to check: a worker pulls no images of the control plane.
func Images(context.Context, sdk.Machine, string, []byte) error { return nil }

// Containers has nothing to describe: Windows has no control plane.
func Containers(context.Context, sdk.Machine, settings.Settings, *strings.Builder) []Container {
	return nil
}
