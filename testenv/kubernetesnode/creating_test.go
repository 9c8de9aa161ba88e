package kubernetesnode

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const creating = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: KubernetesNode
metadata: {name: node}
spec:
  role: controlPlaneInit
  kubernetesVersion: v1.36.3
  cluster: {endpoint: "ADDRESS:6443", imageRepository: testenv.invalid, keyAlgorithm: ECDSA-P256}
  node: {ip: ADDRESS, imagePullPolicy: PULL, kubeletArgs: [KUBELET], register: REGISTER}
  discovery: {token: {value: ` + token + `}}
  certificateKey: {value: ` + key + `}
  kubelet: {cgroupDriver: cgroupfs, config: {failCgroupV1: false, failSwapOn: false}}
  etcd: {local: {args: [ETCD]}}
  files:
    - {path: /etc/kubernetes/audit/policy.yaml, content: "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: LEVEL}]\n"}
  apiServer:
    args: [{name: audit-policy-file, value: /etc/kubernetes/audit/policy.yaml}, {name: audit-log-path, value: "-"}]
    volumes: [{name: audit, hostPath: /etc/kubernetes/audit, pathType: Directory}]
  ignorePreflightErrors: [` + cluster.IgnoredPreflightErrors + `]
  timeouts: {controlPlane: WAIT, kubelet: WAIT, kubernetesAPI: WAIT}
`

// TestCreationFails: why a control plane does not start is in the first line of the status, and a run without the cause
// completes what the failed ones left.
func TestCreationFails(t *testing.T) {
	t.Parallel()
	network := nodes.NewNetwork(t, "control")
	n := newApplicant(t, network, "control", true)
	values := func(more ...string) []string { // the first of a name counts
		return append(more, "PULL", "Never", "KUBELET", "", "REGISTER", "true", "ETCD", "", "LEVEL", "Metadata", "WAIT", "20s")
	}
	const (
		image     = "testenv.invalid/kube-scheduler:v1.36.3"
		preflight = "kubeadm init failed in the phase preflight: "
		waiting   = "kubeadm init failed in the phase wait-control-plane: "
		images    = "ctr --namespace=k8s.io images "
	)
	planned := func(want int, values []string) {
		t.Helper()
		require.Eventually(t, func() bool { return n.run(t, "plan", creating, values...).ExitCode == want }, needs.Timeout(time.Minute), 100*time.Millisecond)
	}
	for _, c := range []struct {
		name, before, after string
		failure             failure
	}{
		{"an image is missing and none may be pulled", images + "export --local /run/kept.tar " + image + " && " + images + "rm --sync " + image, "", failure{
			values:  values(),
			message: "spec.node.imagePullPolicy: the image " + image + " is not on the machine, and none may be pulled",
			remedy:  "ctr -n k8s.io images import FILE",
		}},
		{"an image is in no registry", "", images + "import /run/kept.tar && rm /run/kept.tar", failure{
			values: values("PULL", "IfNotPresent"), phase: "preflight",
			message: preflight + "ImagePull: an image of the control plane cannot be pulled",
			cause:   "lookup testenv.invalid on ", remedy: "see which in details.json",
		}},
		{"etcd has data", "mkdir -p /var/lib/etcd/member", "rm -r /var/lib/etcd", failure{
			values: values(), phase: "preflight",
			message: preflight + "DirAvailable--var-lib-etcd: the data directory of etcd is not empty",
			cause:   "/var/lib/etcd is not empty", remedy: "kubeadm reset, if the machine is no node",
		}},
		{"the kubelet ends", "", "", failure{
			values: values("KUBELET", "{name: root-dir, value: /dev/null/kubelet}"), wait: 8 * time.Second, phase: "wait-control-plane",
			message: waiting + "the control plane does not become healthy: the kubelet has started no container of it",
			cause:   "kubelet: command failed: ", remedy: "see the state of the containers",
		}},
		{"the API server ends", "", "kubeadm reset --force", failure{ // it first removes what the case before has left
			values: values("LEVEL", "&level All"), wait: 40 * time.Second, phase: "wait-control-plane", // an anchor, which plan leaves to the API server
			message: waiting + "the control plane does not become healthy: kube-apiserver ends with exit code 1",
			cause:   `kube-apiserver: command failed: `, remedy: "see the state of the containers",
		}},
		{"etcd ends", "", "", failure{ // likewise
			values: values("ETCD", "{name: v2-deprecation, value: x}"), wait: 40 * time.Second, phase: "wait-control-plane",
			message: waiting + "the control plane does not become healthy: etcd ends with exit code 2",
			cause:   "etcd: ", remedy: "see the state of the containers",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n.MustExec(t, "sh", "-c", "set -e; "+c.before)
			if c.failure.text = creating; c.failure.phase == "" {
				planned(4, c.failure.values)
			}
			n.fails(t, c.failure)
			n.MustExec(t, "sh", "-c", "set -e; "+c.after)
		})
	}
	planned(10, values()) // the runtime has noticed the image
	t.Run("the machine is alone", func(t *testing.T) { alone(t, n, values("REGISTER", "false")) })
	n.applied(t, creating, values("WAIT", "10m")...)
	cluster.AwaitReady(t, n.Node, "/api/v1/nodes", 1)
}
