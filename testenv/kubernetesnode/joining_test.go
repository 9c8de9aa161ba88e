package kubernetesnode

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// pki is the directory of certificates that kubeadm has by default.
const pki = "/etc/kubernetes/pki"

const joining = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: KubernetesNode
metadata: {name: node}
spec:
  role: worker
  kubernetesVersion: v1.36.3
  cluster: {endpoint: "ENDPOINT", certificatesDir: DIRECTORY}
  node: {ip: ADDRESS, kubeletArgs: [ARGUMENT]}
  discovery: {token: {value: TOKEN}, caCertHashes: ["HASH"]}
  kubelet: {cgroupDriver: cgroupfs}
  ignorePreflightErrors: [` + cluster.IgnoredPreflightErrors + `]
  timeouts: {discovery: DISCOVERY, kubelet: WAIT, tlsBootstrap: WAIT}
`

// bootstrapToken makes the token one of the cluster.
const bootstrapToken = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"bootstrap-token-abcdef"},"type":"bootstrap.kubernetes.io/token",
	"stringData":{"token-id":"abcdef","token-secret":"c4n4rytoken12345","usage-bootstrap-authentication":"true",
	"usage-bootstrap-signing":"true","auth-extra-groups":"system:bootstrappers:kubeadm:default-node-token"}}`

// TestJoinFails: why a node did not join is in the first line of the status. With the cause removed, the same document makes the
// node join.
func TestJoinFails(t *testing.T) {
	t.Parallel()
	network := nodes.NewNetwork(t, "control", "worker", "absent")
	worker := newApplicant(t, network, "worker", false)
	c := cluster.APIServer(t, network, "control")
	cluster.API(t, c.Node, "/api/v1/namespaces/kube-system/secrets", "--header", "Content-Type: application/json", "--data", bootstrapToken)
	values := func(more ...string) []string { // the first of a name counts
		return append(more, "TOKEN", token, "HASH", c.CACertHash, "ENDPOINT", c.Endpoint, "ARGUMENT", "", "DIRECTORY", pki, "DISCOVERY", "3s", "WAIT", "10s")
	}
	// set replaces text in what kubeadm keeps in the cluster for all nodes. It returns what undoes that.
	set := func(name, key, text, by string) func() {
		path := "/api/v1/namespaces/kube-system/configmaps/" + name
		var have struct{ Data map[string]string }
		require.NoError(t, cluster.Get(t, c.Node, path, &have))
		require.Contains(t, have.Data[key], text)
		put := func(text string) {
			data, err := json.Marshal(map[string]any{"data": map[string]string{key: text}})
			require.NoError(t, err)
			cluster.API(t, c.Node, path, "--request", "PATCH", "--header", "Content-Type: application/merge-patch+json", "--data", string(data))
		}
		put(strings.Replace(have.Data[key], text, by, 1))
		return func() { put(have.Data[key]) }
	}
	const discovery = "kubeadm join failed in the phase preflight: "
	for name, f := range map[string]failure{
		"a token that the cluster does not have": {
			values: values("TOKEN", "absent"+token[6:]), message: "spec.discovery.token: " + discovery + "the cluster does not know the bootstrap token, or it has expired",
			cause: `could not find a JWS signature in the cluster-info ConfigMap for token ID "absent"`, remedy: "create one on a control plane",
		},
		"a token with another secret": {
			values: values("TOKEN", cluster.Token[:7]+token[7:]), message: "spec.discovery.token: " + discovery + "the second part of the bootstrap token is wrong",
			cause: "can't trust this API Server", remedy: "create one on a control plane",
		},
		"another authority": {
			values:  values("HASH", "sha256:"+strings.Repeat("0", 64)),
			message: "spec.discovery.caCertHashes: " + discovery + "another cluster answers, or its certificate authority has changed",
			cause:   `"` + c.CACertHash + `" are pinned`, remedy: "compare the hash and the endpoint with kubeadm token create",
		},
		"an address without a machine": {
			values:  values("ENDPOINT", network.Address("absent").String()+":6443"),
			message: "spec.cluster.endpoint: " + discovery + "the API server cannot be reached",
			cause:   network.Address("absent").String() + ":6443: connect: no route to host", remedy: "check the address",
		},
		"an address without a server": {
			values:  values("ENDPOINT", network.Address("control").String()+":1"),
			message: "spec.cluster.endpoint: " + discovery + "the API server cannot be reached",
			cause:   "connect: connection refused", remedy: "check the address",
		},
		"a name without an address": {
			values:  values("ENDPOINT", "nowhere.invalid:6443"),
			message: "spec.cluster.endpoint: " + discovery + "the name of the API server cannot be resolved",
			cause:   "nowhere.invalid", remedy: "check the name",
		},
	} {
		f.text, f.phase = joining, "preflight"
		t.Run(name, func(t *testing.T) { worker.fails(t, f) })
	}
	t.Run("an older version than the kubelet's", func(t *testing.T) {
		worker.fails(t, failure{
			text: joining, values: values(cluster.V136.Patch(), "v1.35.0"), remedy: "install the kubelet of this version of Kubernetes",
			message: "spec.kubernetesVersion: the installed kubelet is v1.36.3, which is newer than the control plane",
		})
	})
	t.Run("a kubelet that ends", func(t *testing.T) {
		worker.fails(t, failure{
			text: joining, values: values("ARGUMENT", "{name: config-dir, value: /dev/null/kubelet}"), wait: 10 * time.Second, phase: "kubelet-wait-bootstrap",
			message: "kubeadm join failed in the phase kubelet-wait-bootstrap: the kubelet does not become healthy",
			cause:   "kubelet: command failed: ", remedy: "see the log of the kubelet",
		})
	})
	t.Run("a kubelet that ends with its certificate", func(t *testing.T) {
		f := failure{
			text: joining, values: values("ARGUMENT", "{name: root-dir, value: /dev/null/kubelet}"), wait: 10 * time.Second, phase: "kubelet-wait-bootstrap",
			message: "kubeadm join failed in the phase kubelet-wait-bootstrap: the kubelet does not become healthy",
			cause:   "kubelet: command failed: ", remedy: "see the log of the kubelet",
		}
		worker.fails(t, f)
		worker.MustExec(t, "test", "-e", "/etc/kubernetes/kubelet.conf")
		f.message = "the kubelet does not become healthy: not within "
		first, _ := worker.failed(t, f)
		require.Empty(t, f.missing(first), "it is not in %q", first)
	})
	t.Run("a family that the machine does not forward", func(t *testing.T) {
		defer set("kubeadm-config", "ClusterConfiguration", "\nnetworking:\n", "\nnetworking:\n  podSubnet: 10.244.0.0/16,2001:db8:42::/56\n")()
		worker.MustExec(t, "sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/all/forwarding")
		worker.fails(t, failure{
			text: joining, values: values(), message: "net.ipv6.conf.all.forwarding is not 1: the machine forwards no IPv6 packets of pods",
			remedy: "put a Sysctl document with the profile kubernetes-ipv6 before this one",
		})
	})
	const ssl = "/etc/kubernetes/ssl" // of kubespray
	set("kubeadm-config", "ClusterConfiguration", "certificatesDir: "+pki, "certificatesDir: "+ssl)
	set("kubelet-config", "kubelet", "clientCAFile: "+pki, "clientCAFile: "+ssl)
	t.Run("another directory of certificates than the cluster's", func(t *testing.T) {
		worker.fails(t, failure{
			text: joining, values: values(), remedy: "set it to " + ssl,
			message: "spec.cluster.certificatesDir: is " + pki + ", and the cluster has its certificates in " + ssl + ": the kubelet would not find the authority",
		})
	})
	worker.applied(t, joining, values("DIRECTORY", ssl, "DISCOVERY", "10m", "WAIT", "10m")...)
	worker.MustExec(t, "sh", "-c", "test -e "+ssl+"/ca.crt && test ! -e "+pki+"/ca.crt")
	worker.MustExec(t, "sh", "-c", "! grep root-dir /var/lib/kubelet/kubeadm-flags.env") // of the join that failed with the certificate
	cluster.AwaitReady(t, c.Node, "/api/v1/nodes", 1)
}
