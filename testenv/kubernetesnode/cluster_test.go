package kubernetesnode

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
	"github.com/machineadm/machineadm/testenv/timeservers"
)

// machine is the part of a stream that every node has. The images are on the machine, under names without a registry.
const machine = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Sysctl
metadata: {name: forwarding}
spec: {parameters: {net.ipv4.ip_forward: "1"}}
---
apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Timesync
metadata: {name: node}
spec: {servers: [{address: time}], waitForSync: {timeout: 1m}}
---
apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: ContainerRuntime
metadata: {name: node}
spec: {cgroupDriver: cgroupfs, sandboxImage: "testenv.invalid/pause:3.10.2", logLevel: info}
---
`

// auditPolicy are the files of every control plane: the API server reads the policy.
const auditPolicy = `
  files:
    - path: /etc/kubernetes/audit/policy.yaml
      content: |
        apiVersion: audit.k8s.io/v1
        kind: Policy
        rules: [{level: Metadata}]
`

const control = machine + `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: KubernetesNode
metadata: {name: node}
spec:
  role: controlPlaneInit
  kubernetesVersion: v1.36.3
  cluster: {endpoint: "ENDPOINT", imageRepository: testenv.invalid, keyAlgorithm: ECDSA-P256}
  node: {ip: ADDRESS, imagePullPolicy: Never, labels: {example.com/site: a}}
  discovery: {token: {value: ` + token + `}}
  certificateKey: {value: ` + key + `}
  kubelet: {cgroupDriver: cgroupfs, config: {failCgroupV1: false, failSwapOn: false}}
  apiServer:
    args: [{name: audit-policy-file, value: /etc/kubernetes/audit/policy.yaml}, {name: audit-log-path, value: "-"}]
    volumes: [{name: audit, hostPath: /etc/kubernetes/audit, pathType: Directory}]
  ignorePreflightErrors: [` + cluster.IgnoredPreflightErrors + `]` + auditPolicy

const further = machine + `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: KubernetesNode
metadata: {name: node}
spec:
  role: controlPlaneJoin
  kubernetesVersion: v1.36.3
  cluster: {endpoint: "ENDPOINT"}
  node: {ip: ADDRESS, imagePullPolicy: Never, labels: {example.com/site: c}}
  discovery: {token: {value: ` + token + `}, caCertHashes: ["HASH"]}
  certificateKey: {value: ` + key + `}
  kubelet: {cgroupDriver: cgroupfs}
  ignorePreflightErrors: [` + cluster.IgnoredPreflightErrors + `]` + auditPolicy

const worker = machine + `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: KubernetesNode
metadata: {name: node}
spec:
  role: worker
  kubernetesVersion: v1.36.3
  cluster: {endpoint: "ENDPOINT"}
  node: {ip: ADDRESS, labels: {example.com/site: b}}
  discovery: {token: {value: ` + token + `}, caCertHashes: ["HASH"]}
  kubelet: {cgroupDriver: cgroupfs, maxPods: 50}
  ignorePreflightErrors: [` + cluster.IgnoredPreflightErrors + `]
`

const (
	nodesPath       = "/api/v1/nodes"
	controlPodsPath = "/api/v1/namespaces/kube-system/pods?labelSelector=tier%3Dcontrol-plane"
)

// TestOneStream: one stream makes a machine the first control plane, another one a worker of its cluster, and another one a
// second control plane. Repeated, they change nothing, also after a reboot. Beside the cluster of another test the nodes would have no
// inotify instances left for nodes of other packages.
//
//machineadm:core
func TestOneStream(t *testing.T) {
	f := newFleet(t, "control", "worker", "further")
	endpoint := f.network.Address("control").String() + ":6443"
	first := f.boot(t, "control", true)
	first.write(t, control, "ENDPOINT", endpoint, "ADDRESS", first.Address().String())
	first.apply(t)
	hash := cluster.CACertHash(t, first.Node)

	second := f.boot(t, "worker", false)
	second.write(t, worker, "ENDPOINT", endpoint, "ADDRESS", second.Address().String(), "HASH", hash)
	second.apply(t)
	assert.Contains(t, second.MustExec(t, "cat", "/var/lib/kubelet/config.yaml").Stdout, "maxPods: 50")

	third := f.boot(t, "further", true)
	third.write(t, further, "ENDPOINT", endpoint, "ADDRESS", third.Address().String(), "HASH", hash)
	third.apply(t)

	cluster.AwaitReady(t, first.Node, nodesPath, 3)
	for _, site := range []string{"a", "b", "c"} {
		cluster.AwaitReady(t, first.Node, nodesPath+"?labelSelector=example.com%2Fsite%3D"+site, 1)
	}
	cluster.AwaitReady(t, first.Node, nodesPath+"?labelSelector=node-role.kubernetes.io%2Fcontrol-plane", 2)
	cluster.AwaitReady(t, first.Node, controlPodsPath, 8)
	require.ElementsMatch(t, []string{"control", "further"}, etcdMembers(t, first))
	requireSigned(t, first, 3)
	for _, n := range []node{first, second, third} {
		n.noSecrets(t)
	}

	require.NoError(t, second.Reboot(t.Context()))
	time := f.network.Address("time").String()
	nodestest.Eventually(t, "chronyd to be synchronized again", func() bool { return timeservers.Chrony.Selected(t, second.Node) == time })
	second.unchanged(t)
	cluster.AwaitReady(t, first.Node, nodesPath, 3)
	first.unchanged(t)
	third.unchanged(t)
}

// etcdMembers returns the names of the members of etcd that vote.
func etcdMembers(t *testing.T, n node) (names []string) {
	t.Helper()
	const list = `cd /etc/kubernetes/pki && exec curl --silent --show-error --fail --cacert etcd/ca.crt --cert apiserver-etcd-client.crt \
		--key apiserver-etcd-client.key --data '{}' https://127.0.0.1:2379/v3/cluster/member/list`
	var etcd struct {
		Members []struct {
			Name      string `json:"name"`
			IsLearner bool   `json:"isLearner"`
		} `json:"members"`
	}
	require.NoError(t, json.Unmarshal([]byte(n.MustExec(t, "sh", "-c", list).Stdout), &etcd))
	for _, member := range etcd.Members {
		if !member.IsLearner {
			names = append(names, member.Name)
		}
	}
	return names
}

// requireSigned checks that the cluster has signed the certificates of so many kubelets, and that no request is left.
func requireSigned(t *testing.T, control node, want int) {
	t.Helper()
	var requests struct {
		Items []struct {
			Status struct {
				Certificate []byte `json:"certificate"`
				Conditions  []struct {
					Type string `json:"type"`
				} `json:"conditions"`
			} `json:"status"`
		} `json:"items"`
	}
	require.NoError(t, cluster.Get(t, control.Node, "/apis/certificates.k8s.io/v1/certificatesigningrequests", &requests))
	require.Len(t, requests.Items, want)
	for _, request := range requests.Items {
		require.NotEmpty(t, request.Status.Certificate)
		require.Len(t, request.Status.Conditions, 1)
		require.Equal(t, "Approved", request.Status.Conditions[0].Type)
	}
}
