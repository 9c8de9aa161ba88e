package kubernetesnode

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
	filled "github.com/machineadm/machineadm/host/controller/kubernetesnode"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/cluster"
)

// withoutEtcd is an object that all control planes share. Their etcd is elsewhere.
const withoutEtcd = `{
  "kubernetesVersion": "v1.36.3",
  "cluster": {"imageRepository": "testenv.invalid", "keyAlgorithm": "ECDSA-P256"},
  "node": {"ip": %q, "imagePullPolicy": "Never"},
  "kubelet": {"cgroupDriver": "cgroupfs", "config": {"failCgroupV1": false, "failSwapOn": false}},
  "apiServer": {"args": [{"name": "v", "value": "2"}]},
  "etcd": {"external": {"endpoints": [%q], "ca": %q, "cert": %q, "key": {"value": %q}}},
  "ignorePreflightErrors": ["` + cluster.IgnoredPreflightErrors + `"]
}`

// TestExternalEtcd: control planes whose etcd is elsewhere, from one object and the certificates that the controller adds.
func TestExternalEtcd(t *testing.T) {
	f := newFleet(t, "etcd", "control", "further")
	ca := authority.New(t)
	url := cluster.Etcd(t, f.network, "etcd", ca)
	certificate, key := ca.Issue(t, "kube-apiserver-etcd-client", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })

	facts := &filled.Facts{
		Version: "v1.36.3", Cluster: "prod", Endpoint: f.network.Address("control").String() + ":6443", Certificates: clusterCertificates(t), Token: token,
	}
	block, _ := pem.Decode([]byte(facts.Certificates.CA.Certificate))
	parsed, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	facts.CACertHashes = []string{fmt.Sprintf("sha256:%x", sha256.Sum256(parsed.RawSubjectPublicKeyInfo))}

	join := func(name, role string) node {
		n := f.boot(t, name, true)
		facts.Role = role
		n.write(t, machine+filledNode(t, fmt.Sprintf(withoutEtcd, n.Address(), url, ca.Certificate, certificate, key), facts))
		n.apply(t)
		return n
	}
	first := join("control", contract.ControlPlaneInit)
	// The controller leaves no token in the cluster that it creates: it makes one when a machine joins.
	first.MustExec(t, "kubeadm", "token", "create", token, "--kubeconfig=/etc/kubernetes/admin.conf")
	further := join("further", contract.ControlPlaneJoin)
	cluster.AwaitReady(t, first.Node, nodesPath+"?labelSelector=node-role.kubernetes.io%2Fcontrol-plane", 2)
	cluster.AwaitReady(t, first.Node, controlPodsPath, 6) // three each, and no etcd
	for _, n := range []node{first, further} {
		n.unchanged(t)
	}
}

// filledNode is the document of a machine, as the controller makes it of an object.
func filledNode(t *testing.T, spec string, facts *filled.Facts) string {
	t.Helper()
	doc := contract.KubernetesNode{}
	require.Empty(t, document.Unmarshal(fmt.Appendf(nil, `{"apiVersion": %q, "kind": "KubernetesNode", "metadata": {"name": "node"}, "spec": %s}`,
		contract.APIVersion, spec), &doc))
	require.Empty(t, filled.Fill(&doc.Spec, facts))
	stream, err := emit.Stream([]emit.Document{{Header: doc.Header, Spec: &doc.Spec}})
	require.NoError(t, err)
	return string(stream)
}
