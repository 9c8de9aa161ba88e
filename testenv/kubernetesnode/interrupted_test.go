package kubernetesnode

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/containerd"
)

const (
	plugin = "machineadm-kubernetes-node-plugin-kubeadm"
	stream = "/etc/machineadm/node.yaml"
	token  = "abcdef.c4n4rytoken12345"
	key    = "c4f4d4c4f4d4c4f4d4c4f4d4c4f4d4c4f4d4c4f4d4c4f4d4c4f4d4c4f4d4c4f4"
)

// secrets lists the files that hold one.
const secrets = "grep -rlsE -D skip 'c4n4rytoken|" + key + "' /etc /run /var /tmp /root || true"

// spec creates a cluster whose kubelet never answers, with waits that end soon.
const spec = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: KubernetesNode
metadata: {name: node}
spec:
  role: controlPlaneInit
  kubernetesVersion: v1.37.1
  cluster: {endpoint: "api.example.com:6443"}
  node: {name: node-1, ip: 10.44.0.2}
  discovery: {token: {value: ` + token + `}}
  certificateKey: {value: ` + key + `}
  staticPods: [{name: proxy, manifest: "{apiVersion: v1, kind: Pod, metadata: {name: proxy}, spec: {containers: [{name: a, image: b}]}}"}]
  patches: [{target: kubeletconfiguration, patch: "maxPods: 50"}]
  skipPhases: [preflight]
  ignoreAllPreflightErrors: true
  timeouts: {controlPlane: 5s, kubelet: 5s, kubernetesAPI: WAIT}
`

// kubelet has the version of a kubelet and nothing else.
const kubelet = `#!/bin/sh
[ "$1" = --version ] && echo Kubernetes v1.37.1 && exit
exec sleep infinity
`

// TestInterrupted: a killed run leaves no secret where it does not belong. The next one shows that it removes what is left,
// does it with the real kubeadm, runs it again, and says why that fails.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	kubeadm := cluster.Kubeadm(t, cluster.V137)
	n := start(t, kubeadm)
	n.Write(t, stream, strings.Replace(spec, "WAIT", "10m", 1))
	n.MustExec(t, "chmod", "600", stream)
	n.MustExec(t, "systemd-run", "--unit=killed", "machineadm", "apply", "--path", stream)
	require.Eventually(t, func() bool {
		r, err := n.Exec(t.Context(), "test", "-e", "/etc/kubernetes/manifests/kube-scheduler.yaml")
		return err == nil && r.ExitCode == 0
	}, 2*time.Minute, 100*time.Millisecond)
	require.Contains(t, n.Bash(t, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '").Stdout, "init --config /dev/stdin --upload-certs")
	require.NotContains(t, n.Bash(t, "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null || true").Stdout, "c4n4rytoken")
	n.MustExec(t, "systemctl", "kill", "--signal=KILL", "killed.service")
	require.Eventually(t, func() bool {
		r, err := n.Exec(t.Context(), "pgrep", "-x", "kubeadm")
		return err == nil && r.ExitCode == 1
	}, time.Minute, 100*time.Millisecond)
	require.Equal(t, stream+"\n", n.Bash(t, secrets).Stdout)

	n.Write(t, stream, strings.Replace(spec, "WAIT", "5s", 1))
	n.MustExec(t, "chmod", "600", stream)
	planned, err := n.Exec(t.Context(), "machineadm", "plan", "--path", stream)
	require.NoError(t, err)
	require.Equal(t, report.ExitDiffers, planned.ExitCode, planned.Stdout+planned.Stderr)
	require.Contains(t, planned.Stdout, "remove what an interrupted kubeadm init left (kubeadm reset)")
	applied, err := n.Exec(t.Context(), "machineadm", "apply", "--path", stream)
	require.NoError(t, err)
	require.Equal(t, report.ExitPrecondition, applied.ExitCode, applied.Stdout+applied.Stderr)
	require.Contains(t, applied.Stdout, "removing what an unfinished run left")
	require.Contains(t, applied.Stdout, "creating certificates")
	status := n.MustExec(t, "machineadm", "status").Stdout
	first, _, _ := strings.Cut(status, "\n")
	require.Contains(t, first, "kubeadm init failed in the phase wait-control-plane: the control plane does not become healthy")
	require.Contains(t, first, "the kubelet has started no container of it")
	require.Contains(t, n.Bash(t, "cat /run/machineadm/details.json").Stdout, "could not bootstrap the admin user")
	require.Equal(t, stream+"\n", n.Bash(t, secrets).Stdout)
	require.Empty(t, n.Bash(t, "ls -d /run/machineadm-kubernetes-node 2>/dev/null || true").Stdout)
	require.Equal(t, "600\n", n.MustExec(t, "stat", "-c", "%a", "/etc/kubernetes/manifests/proxy.yaml").Stdout)
}

// start boots a node with containerd, this kubeadm, the stand-in for a kubelet, the host and the plugin.
func start(t *testing.T, kubeadm string) *containerd.Daemon {
	t.Helper()
	programs := build(t)
	programs[kubeadm] = "/usr/bin/kubeadm"
	n := containerd.Start(t, containerd.V17)
	n.MustExec(t, "mkdir", "-p", "/usr/libexec/machineadm", "/etc/machineadm")
	for from, to := range programs {
		require.NoError(t, n.CopyIn(t.Context(), from, to, 0o755))
	}
	n.Write(t, "/usr/bin/kubelet", kubelet)
	n.Write(t, "/etc/systemd/system/kubelet.service", "[Service]\nExecStart=/usr/bin/kubelet\n[Install]\nWantedBy=multi-user.target\n")
	n.MustExec(t, "sh", "-c", "chmod 755 /usr/bin/kubelet; systemctl daemon-reload; ip address add 10.44.0.2/24 dev lo")
	return n
}
