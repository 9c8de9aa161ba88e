package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// commandOf runs a program by its path: the first of this name on the machine's path can be another one.
func commandOf(binary string, args ...string) machine.Command {
	return machine.Command{Name: filepath.Base(binary), Directory: filepath.Dir(binary), Args: args}
}

// installHint names the package for the family of operating systems.
func installHint(t sdk.Target) string {
	is := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return t.Distribution == name || slices.Contains(t.Like, name) })
	}
	switch {
	case t.OS == "windows":
		return `install containerd's archive for Windows in C:\Program Files\containerd and run containerd.exe --register-service`
	case is("flatcar", "coreos"):
		return "see systemctl status " + settings.Unit + ": containerd is a part of the system image there"
	case is("debian", "ubuntu"):
		return "install the package containerd of the distribution, or containerd.io of Docker"
	case is("rhel", "fedora", "centos"):
		return "install the package containerd.io of Docker, or containerd where the distribution has it"
	case is("suse", "sles", "opensuse"):
		return "install the package containerd"
	}
	return "install containerd with its unit, by a package or by upstream's archive"
}

// versionLive is the version that the program prints: "containerd MODULE VERSION REVISION".
func versionLive(ctx context.Context, m sdk.Machine, binary string) (string, error) {
	command := commandOf(binary, "--version")
	command.Constant = true
	result, err := m.Commands.Run(ctx, command)
	if errors.Is(err, fs.ErrNotExist) {
		return "", sdk.Precondition(binary+", which "+settings.PathsOf(m.Target.OS).Unit+" starts, is not installed", installHint(m.Target))
	}
	if err != nil {
		return "", fmt.Errorf("ask containerd for its version: %w", err)
	}
	answer := strings.Fields(string(result.Stdout))
	if len(answer) < 3 {
		return "", sdk.Precondition(binary+" --version does not answer as containerd does", installHint(m.Target))
	}
	return answer[2], nil
}

// SandboxWarning compares the sandbox image with the one of an installed kubeadm. kubeadm gets its own version as an
// argument, so that it does not look for one in the network. An error of kubeadm is ignored.
func SandboxWarning(ctx context.Context, m sdk.Machine, image string, result *sdk.Plan) error {
	if m.Offline() || image == "" {
		return nil
	}
	if _, err := m.Commands.Find("kubeadm"); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	run := func(args ...string) string {
		r, err := m.Commands.Run(ctx, machine.Command{Name: "kubeadm", Args: args, Constant: true})
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(r.Stdout))
	}
	version := run("version", "--output=short")
	if version == "" {
		return ctx.Err()
	}
	_, ours, _ := strings.Cut(image, "/pause:")
	for line := range strings.Lines(run("config", "images", "list", "--kubernetes-version="+version)) {
		if _, wanted, ok := strings.Cut(strings.TrimSpace(line), "/pause:"); ok && ours != wanted {
			result.Warn("spec.sandboxImage", "kubeadm "+version+" wants pause:"+wanted+
				": with another one the kubelet may remove the image that pods need")
		}
	}
	return ctx.Err()
}
