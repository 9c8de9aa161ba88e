package kubernetesnode

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	// holdRuntime keeps containerd in its start until releaseRuntime, as a large image or a slow disk does at a boot.
	holdRuntime = `set -eu
mkdir -p /run/systemd/system/containerd.service.d
printf '[Service]\nTimeoutStartSec=infinity\nExecStartPre=/bin/sh -c "until test -e /run/go; do sleep 0.1; done"\n' \
	>/run/systemd/system/containerd.service.d/hold.conf
systemctl daemon-reload
systemctl stop containerd
systemctl start --no-block containerd
until systemctl show -P ActiveState containerd | grep -qx activating; do sleep 0.1; done`
	releaseRuntime = "touch /run/go"
)

// TestRuntimeThatStarts: a run waits for the container runtime that the boot is starting, says so, and continues. The stream has no
// ContainerRuntime, as in a baked image whose first boot has nothing to change of it.
func TestRuntimeThatStarts(t *testing.T) {
	t.Parallel()
	n := newApplicant(t, nodes.NewNetwork(t, "control"), "control", true)
	n.MustExec(t, "timeout", "600", "sh", "-c", holdRuntime)
	const starting = "the service containerd is being started: the container runtime does not answer"
	r := n.run(t, "plan", creating, "PULL", "Never", "KUBELET", "", "REGISTER", "true", "ETCD", "", "LEVEL", "Metadata", "WAIT", "20s")
	require.Equal(t, report.ExitDiffers, r.ExitCode, r.Stderr)
	require.Contains(t, r.Stdout, starting)
	n.MustExec(t, "timeout", "600", "sh", "-c", `set -eu
systemd-run --quiet --unit=waits --property=StandardOutput=file:/run/waits machineadm apply --path "$1"
says() { until grep -q "$1" /run/waits; do systemctl is-active --quiet waits; sleep 0.1; done; }
says "waiting: $2"
`+releaseRuntime+`
says "KubernetesNode/node: doing: "
systemctl stop waits`, "sh", stream, starting)
	// The unit of the first boot is ordered like this one, and its run restarts the runtime.
	n.MustExec(t, "systemd-run", "--quiet", "--wait", "--property=Type=oneshot", "--property=After=containerd.service",
		"timeout", "600", "sh", "-ec", "systemctl restart containerd; systemctl stop containerd; systemctl start containerd")
}
