package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// defaultSpec is what ctr, which comes with the daemon, prints of its default.
func DefaultSpec(ctx context.Context, m sdk.Machine, i Installation) ([]byte, error) {
	beside := filepath.Join(filepath.Dir(i.binary), "ctr")
	result, err := m.Commands.Run(ctx, commandOf(beside, "oci", "spec"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, sdk.Precondition(beside+" is not installed: it tells what containers start from by default",
			"install it from the archive or package of containerd, or remove baseSpec")
	}
	if err != nil {
		return nil, fmt.Errorf("ask ctr for the default specification of containers: %w", err)
	}
	return result.Stdout, nil
}

// sandboxWarning compares with the pause image of an installed kubeadm. kubeadm is told its own version, so that it asks
// nobody; one that does not answer is no reason to stop.
func SandboxWarning(ctx context.Context, m sdk.Machine, want settings.Desired, result *sdk.Plan) error {
	if m.Offline() || want.Spec.SandboxImage == "" {
		return nil
	}
	if _, err := m.Commands.Find("kubeadm"); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	run := func(args ...string) string {
		r, err := m.Commands.Run(ctx, machine.Command{Name: "kubeadm", Args: args})
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(r.Stdout))
	}
	version := run("version", "--output=short")
	if version == "" {
		return ctx.Err()
	}
	for image := range strings.Lines(run("config", "images", "list", "--kubernetes-version="+version)) {
		_, wanted, ok := strings.Cut(strings.TrimSpace(image), "/pause:")
		_, ours, _ := strings.Cut(want.Spec.SandboxImage, "/pause:")
		if ok && ours != wanted {
			result.Warn("spec.sandboxImage", "kubeadm "+version+" wants pause:"+wanted+
				": with another one the kubelet may remove the image that pods need")
		}
	}
	return ctx.Err()
}

// commandOf runs a program by its path: the machine may find another one of this name first, as with one in
// /usr/local/bin beside the distribution's.
func commandOf(binary string, args ...string) machine.Command {
	return machine.Command{Name: filepath.Base(binary), Directory: filepath.Dir(binary), Args: args}
}
