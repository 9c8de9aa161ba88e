package cluster

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/testenv/nodes"
)

// ControlPlane is a node with an etcd, an API server and the controllers that a join needs. It has no kubelet, and is no
// member of its own cluster.
type ControlPlane struct {
	*nodes.Node
	// Endpoint is the address and port of the API server.
	Endpoint string
	// CACertHash is the digest of the certificate of the cluster's authority, as caCertHashes of kubeadm's configuration.
	CACertHash string
}

// Token is the bootstrap token of every Configuration.
const Token = "testen.0123456789abcdef"

// bareUnits are the services of a control plane without a kubelet. Their programs notify systemd when they are ready, but
// the controller manager, which nothing waits for.
func bareUnits(address string) map[string]string {
	unit := func(kind string, argv ...string) string {
		return fmt.Sprintf("[Service]\nType=%s\nTimeoutStartSec=180\nExecStart=%s\n", kind, strings.Join(argv, ` \`+"\n  "))
	}
	const pki, manager = "/etc/kubernetes/pki/", "/etc/kubernetes/controller-manager.conf"
	return map[string]string{
		"etc/systemd/system/etcd.service": unit("notify", "/usr/bin/etcd", "--data-dir=/var/lib/etcd", "--unsafe-no-fsync"),
		"etc/systemd/system/kube-apiserver.service": unit("notify", "/usr/bin/kube-apiserver",
			"--etcd-servers=http://127.0.0.1:2379", "--advertise-address="+address, "--service-cluster-ip-range=10.96.0.0/16",
			"--tls-cert-file="+pki+"apiserver.crt", "--tls-private-key-file="+pki+"apiserver.key", "--client-ca-file="+pki+"ca.crt",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file="+pki+"sa.pub", "--service-account-signing-key-file="+pki+"sa.key",
			"--authorization-mode=Node,RBAC", "--enable-bootstrap-token-auth", "--allow-privileged", "--endpoint-reconciler-type=none"),
		"etc/systemd/system/kube-controller-manager.service": unit("exec", "/usr/bin/kube-controller-manager",
			"--kubeconfig="+manager, "--authentication-kubeconfig="+manager, "--authorization-kubeconfig="+manager, "--leader-elect=false",
			"--use-service-account-credentials", "--root-ca-file="+pki+"ca.crt", "--service-account-private-key-file="+pki+"sa.key",
			"--cluster-signing-cert-file="+pki+"ca.crt", "--cluster-signing-key-file="+pki+"ca.key",
			"--controllers=bootstrap-signer-controller,token-cleaner-controller,certificatesigningrequest-signing-controller,"+
				"certificatesigningrequest-approving-controller"),
	}
}

// startBare makes the parts in the order that kubeadm init has, with systemd in the place of the kubelet.
const startBare = `set -eu
phase() { kubeadm init phase "$@" --config=/etc/kubernetes/kubeadm.yaml; }
phase certs all
phase kubeconfig all
systemctl start etcd kube-apiserver
curl --silent --fail --output /dev/null --retry 120 --retry-delay 1 --retry-all-errors \
	--cacert /etc/kubernetes/pki/ca.crt "https://$(hostname):6443/readyz"
phase upload-config all
phase bootstrap-token
systemctl start kube-controller-manager`

// APIServer boots a control plane without a kubelet, under a name of the network, and waits until its cluster-info is
// signed: kubeadm join finds all that it asks for there. The programs are built first when the cache does not hold
// them, which takes minutes.
func APIServer(t testing.TB, network *nodes.Network, name string) *ControlPlane {
	t.Helper()
	address := network.Address(name).String()
	files := bareUnits(address)
	files["etc/kubernetes/kubeadm.yaml"] = Configuration(name, address)
	n := nodes.Boot(t, nodes.Options{
		Suite: nodes.Bookworm, Layers: []nodes.Layer{nodes.Kubernetes}, Network: network, Hostname: name,
		Prepare: nodes.InOrder(V136.install(t, "kubeadm", "etcd", "kube-apiserver", "kube-controller-manager"), write(files)),
	})
	n.MustExec(t, "sh", "-c", startBare)
	awaited(t, "the signature of cluster-info", func() (bool, string) {
		r, err := get(t, n, "/api/v1/namespaces/kube-public/configmaps/cluster-info")
		if err != nil {
			return false, err.Error()
		}
		return strings.Contains(r.Stdout, "jws-kubeconfig-"), r.Stdout + r.Stderr
	})
	return &ControlPlane{Node: n, Endpoint: address + ":6443", CACertHash: CACertHash(t, n)}
}

// CACertHash is the digest of the public key of the node's authority.
func CACertHash(t testing.TB, n *nodes.Node) string {
	t.Helper()
	text, err := n.CopyOut(t.Context(), "/etc/kubernetes/pki/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatal("ca.crt is no certificate")
	}
	ca, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(ca.RawSubjectPublicKeyInfo))
}

// Configuration is kubeadm's, of version v1beta4, for a cluster whose first node has the name and address.
func Configuration(name, address string) string {
	return strings.NewReplacer("NAME", name, "ADDRESS", address, "TOKEN", Token, "VERSION", V136.Patch(), "REPOSITORY", ImageRepository).
		Replace(configuration) + KubeletConfiguration
}

const configuration = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens: [{token: TOKEN}]
localAPIEndpoint: {advertiseAddress: ADDRESS}
nodeRegistration: {name: NAME, criSocket: "unix:///run/containerd/containerd.sock"}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: VERSION
imageRepository: REPOSITORY
controlPlaneEndpoint: ADDRESS:6443
encryptionAlgorithm: ECDSA-P256
---
`
