package kubernetesnode

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// machine is the part of a stream that every node has. The images are on the machine, under names without a registry.
const machine = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Sysctl
metadata: {name: forwarding}
spec: {parameters: {net.ipv4.ip_forward: "1"}}
---
apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: ContainerRuntime
metadata: {name: node}
spec: {cgroupDriver: cgroupfs, sandboxImage: "testenv.invalid/pause:3.10.2", logLevel: info}
---
`

const control = machine + `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: KubernetesNode
metadata: {name: node}
spec:
  role: controlPlaneInit
  kubernetesVersion: v1.37.1
  cluster: {endpoint: "ENDPOINT", imageRepository: testenv.invalid, keyAlgorithm: ECDSA-P256}
  node: {ip: ADDRESS, imagePullPolicy: Never, labels: {example.com/site: a}}
  discovery: {token: {value: ` + token + `}}
  kubelet: {cgroupDriver: cgroupfs, config: {failCgroupV1: false, failSwapOn: false}}
  files:
    - path: /etc/kubernetes/audit/policy.yaml
      content: |
        apiVersion: audit.k8s.io/v1
        kind: Policy
        rules: [{level: Metadata}]
  apiServer:
    args: [{name: audit-policy-file, value: /etc/kubernetes/audit/policy.yaml}, {name: audit-log-path, value: "-"}]
    volumes: [{name: audit, hostPath: /etc/kubernetes/audit, pathType: Directory}]
  ignorePreflightErrors: [` + cluster.IgnoredPreflightErrors + `]
`

const worker = machine + `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: KubernetesNode
metadata: {name: node}
spec:
  role: worker
  kubernetesVersion: v1.37.1
  cluster: {endpoint: "ENDPOINT"}
  node: {ip: ADDRESS, labels: {example.com/site: b}}
  discovery: {token: {value: ` + token + `}, caCertHashes: ["HASH"]}
  kubelet: {cgroupDriver: cgroupfs, maxPods: 50}
  ignorePreflightErrors: [` + cluster.IgnoredPreflightErrors + `]
`

// TestOneStream: one stream makes a machine a control plane, another one a worker of its cluster. Repeated, they change
// nothing, also after a reboot.
func TestOneStream(t *testing.T) {
	t.Parallel()
	network := nodes.NewNetwork(t, "control", "worker")
	programs := build(t)
	boot := func(name string, controlPlane bool) *nodes.Node {
		n := cluster.Boot(t, network, name, controlPlane)
		n.MustExec(t, "mkdir", "-p", "/usr/libexec/machineadm", "/etc/machineadm")
		for from, to := range programs {
			require.NoError(t, n.CopyIn(t.Context(), from, to, 0o755))
		}
		return n
	}
	apply := func(n *nodes.Node, summary string) {
		t.Helper()
		r, err := n.Exec(t.Context(), "machineadm", "apply", "--path", stream)
		require.NoError(t, err)
		if r.ExitCode != 0 {
			details := n.MustExec(t, "sh", "-c", "cat /run/machineadm/details.json || true").Stdout
			t.Fatalf("exit status %d\n%s%s\n%s", r.ExitCode, r.Stdout, r.Stderr, strings.ReplaceAll(details, "\\n", "\n"))
		}
		require.Contains(t, r.Stdout, summary)
		n.MustExec(t, "test", "-e", "/run/cluster-api/bootstrap-success.complete")
		require.Zero(t, n.MustExec(t, "machineadm", "plan", "--path", stream).ExitCode)
	}
	write := func(n *nodes.Node, text string, values ...string) {
		t.Helper()
		r, err := n.ExecInput(t.Context(), strings.NewReader(strings.NewReplacer(values...).Replace(text)),
			"sh", "-c", "umask 077 && cat >"+stream)
		require.NoError(t, err)
		require.Zero(t, r.ExitCode, r.Stderr)
	}
	first, second := boot("control", true), boot("worker", false)
	address := network.Address("control").String()
	write(first, control, "ENDPOINT", address+":6443", "ADDRESS", address)
	apply(first, "3 documents: ")
	write(second, worker, "ENDPOINT", address+":6443", "ADDRESS", network.Address("worker").String(), "HASH", cluster.CACertHash(t, first))
	apply(second, "3 documents: ")
	cluster.AwaitReady(t, first, "/api/v1/nodes", 2)
	cluster.AwaitReady(t, first, "/api/v1/nodes?labelSelector=example.com%2Fsite%3Db", 1)
	cluster.AwaitReady(t, first, "/api/v1/namespaces/kube-system/pods?labelSelector=tier%3Dcontrol-plane", 4)
	assert.Contains(t, second.MustExec(t, "cat", "/var/lib/kubelet/config.yaml").Stdout, "maxPods: 50")
	assert.Equal(t, stream+"\n", second.MustExec(t, "sh", "-c", secrets).Stdout)

	require.NoError(t, second.Reboot(t.Context()))
	apply(second, "3 unchanged")
	cluster.AwaitReady(t, first, "/api/v1/nodes", 2)
	apply(first, "3 unchanged")
}
