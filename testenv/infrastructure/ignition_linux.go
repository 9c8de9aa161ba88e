package infrastructure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// Immutable is the system of a machine whose data is an Ignition configuration: it has Ignition, and counts what it sends.
func Immutable() nodes.Options {
	o := cluster.System()
	o.Layers = append(o.Layers, nodes.Egress, nodes.Ignition)
	return o
}

// ignite returns the step that does what the initial RAM disk of an immutable distribution does: Ignition 2.14 reads the configuration and
// writes files and units. The metadata of the machine is in a file for systemd, as Afterburn has it.
func ignite(ctx context.Context, config, name string) func(root string) error {
	const program = "/usr/lib/dracut/modules.d/30ignition/ignition"
	return func(root string) error {
		hosts, wrong := os.ReadFile(filepath.Join(root, "etc/hosts"))
		wrong = errors.Join(wrong, os.MkdirAll(filepath.Join(root, "etc/selinux"), 0o755))
		for path, text := range map[string]string{
			"config.ign":                config,
			"etc/hostname":              name + "\n",
			"etc/hosts":                 string(hosts) + "127.0.1.1 " + name + "\n", // kubeadm looks the name up
			"etc/selinux/config":        "SELINUX=disabled\nSELINUXTYPE=none\n",     // or Ignition relabels what it has written
			"usr/local/sbin/setfiles":   "#!/bin/sh\n",
			"etc/tmpfiles.d/cloud.conf": "d /run/metadata\nf /run/metadata/flatcar 0644 - - - COREOS_CUSTOM_INSTANCE_ID=" + name + "\n",
		} {
			wrong = errors.Join(wrong, os.WriteFile(filepath.Join(root, path), []byte(text), 0o755)) //nolint:gosec // an image's
		}
		for _, stage := range []string{"fetch", "files"} {
			command := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "--root="+root, "--mount-proc", program, "-platform=file", "-root=/", "-stage="+stage, "-log-to-stdout")
			command.Env = []string{"IGNITION_CONFIG_FILE=/config.ign", "PATH=" + os.Getenv("PATH")}
			if out, err := command.CombinedOutput(); err != nil {
				wrong = errors.Join(wrong, fmt.Errorf("ignition: %w: %s", err, out))
			}
		}
		if out, err := exec.CommandContext(ctx, "systemctl", "--root="+root, "preset", "machineadm-firstboot.service").CombinedOutput(); err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("presets: %w: %s", err, out))
		}
		return errors.Join(wrong, os.Remove(filepath.Join(root, "config.ign")))
	}
}
