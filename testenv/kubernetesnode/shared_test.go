package kubernetesnode

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	filled "github.com/machineadm/machineadm/host/controller/kubernetesnode"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/tools"
)

// sharedFields is a value of every field of a KubernetesNode that the author of an object for machines of several roles can set.
const sharedFields = `
provider: kubeadm
kubernetesVersion: v1.37.1
cluster:
  name: prod
  endpoint: api.example.com:6443
  dnsDomain: cluster.example
  podSubnets: [10.1.0.0/16]
  serviceSubnets: [10.2.0.0/16]
  imageRepository: registry.example.com/kubernetes
  dnsImage: {repository: registry.example.com/coredns, tag: v1.12.1}
  certificateSANs: [api.example.com]
  certificatesDir: /etc/kubernetes/pki
  keyAlgorithm: ECDSA-P256
  certificateValidity: 8760h
  caCertificateValidity: 87600h
node:
  nameFrom: {hostname: short}
  ip: 192.0.2.7
  providerID: example:///7
  labels: {node.kubernetes.io/pool: general}
  taints: [{key: dedicated, value: a, effect: NoSchedule}]
  kubeletArgs: [{name: v, value: "4"}]
  criSocket: unix:///run/containerd/containerd.sock
  imagePullPolicy: IfNotPresent
  cloudProvider: external
  register: true
kubelet: {cgroupDriver: systemd, maxPods: 110, systemReserved: {memory: 500Mi}, serverTLSBootstrap: true, config: {imageGCHighThresholdPercent: 90}}
kubeProxy: {mode: nftables}
certificateKey: {value: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}
etcd: {local: {dataDir: /var/lib/etcd, args: [{name: quota-backend-bytes, value: "8589934592"}]}}
apiServer:
  args: [{name: audit-log-path, value: /var/log/kubernetes/audit.log}]
  env: [{name: GODEBUG, value: a}]
  volumes: [{name: audit, hostPath: /var/log/kubernetes, readOnly: false, pathType: DirectoryOrCreate}]
  image: registry.example.com/kube-apiserver:v1.37.1
controllerManager: {args: [{name: v, value: "2"}]}
scheduler: {args: [{name: v, value: "2"}]}
files: [{path: /etc/example/a.conf, content: a, mode: "0640"}]
staticPods: [{name: proxy, manifest: "{apiVersion: v1, kind: Pod, metadata: {name: proxy}, spec: {containers: [{name: a, image: b}]}}"}]
patches:
- {target: kube-apiserver, patch: "metadata: {labels: {a: b}}"}
- {target: etcd, patch: "metadata: {labels: {a: b}}"}
- {target: kubeletconfiguration, patch: "maxPods: 50"}
- {target: corednsdeployment, patch: "spec: {replicas: 3}"}
skipPhases: [addon/kube-proxy, control-plane-prepare/download-certs]
ignorePreflightErrors: [NumCPU]
ignoreAllPreflightErrors: true
timeouts: {controlPlane: 5m, kubelet: 5m, kubernetesAPI: 2m, etcdAPI: 3m, tlsBootstrap: 6m, discovery: 7m}
profiles: [cis-1.11]
`

// TestSharedByRoles: every node accepts what the controller makes of an object that machines of several roles share: of each of its
// fields alone, and of all.
func TestSharedByRoles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), dir, map[string]string{
		"machineadm": "host/cmd/machineadm", "plugins/machineadm-kubernetes-node-plugin-kubeadm": "plugins/kubernetes-node/kubeadm",
	}))
	text, err := document.JSON("", []byte(sharedFields))
	require.NoError(t, err)
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &fields))
	for _, f := range reflect.VisibleFields(reflect.TypeFor[contract.KubernetesNodeSpec]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "role" && name != "discovery" && name != "certificates" && name != "providerConfig" { // the controller's, and the provider's own
			require.Contains(t, fields, name, "add a value of the field to sharedFields")
		}
	}
	objects := map[string]map[string]json.RawMessage{"all": fields, "an external etcd": {"etcd": json.RawMessage(`{"external":{"endpoints":["http://10.9.8.7:2379"]}}`)}}
	for name, value := range fields {
		objects[name] = map[string]json.RawMessage{name: value}
	}
	delete(fields, "ignorePreflightErrors") // excludes the next
	facts := sharedFacts(t)
	for name, object := range objects {
		for _, role := range []string{contract.ControlPlaneInit, contract.ControlPlaneJoin, contract.Worker} {
			t.Run(name+"/"+role, func(t *testing.T) {
				t.Parallel()
				spec, err := json.Marshal(object)
				require.NoError(t, err)
				f := *facts
				f.Role = role
				file := filepath.Join(t.TempDir(), "node.yaml")
				require.NoError(t, os.WriteFile(file, []byte(filledNode(t, string(spec), &f)), 0o600))
				out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "machineadm"), "validate", "--plugin-dir", filepath.Join(dir, "plugins"), "--path", file).CombinedOutput()
				assert.NoError(t, err, "%s", out)
			})
		}
	}
}

// sharedFacts are the facts of a cluster with certificates, for every role.
func sharedFacts(t *testing.T) *filled.Facts {
	t.Helper()
	certificates := clusterCertificates(t)
	certificates.EtcdCA = authorityPair(t)
	return &filled.Facts{
		Version: "v1.37.1", Cluster: "prod", Endpoint: "api.example.com:6443", Certificates: certificates,
		Token: "abcdef.0123456789abcdef", CACertHashes: []string{"sha256:" + strings.Repeat("0", 64)},
		Uninitialized: contract.Taint{Key: "node.cluster.x-k8s.io/uninitialized", Effect: "NoSchedule"},
	}
}

func authorityPair(t *testing.T) *contract.KeyPair {
	t.Helper()
	ca := authority.New(t)
	return &contract.KeyPair{Certificate: string(ca.Certificate), Key: contract.NewSecret(ca.Key(t))}
}

// clusterCertificates are those that the control planes of a cluster share, but for the authority of an etcd.
func clusterCertificates(t *testing.T) *contract.ClusterCertificates {
	t.Helper()
	account, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(account.Public())
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(account)
	require.NoError(t, err)
	return &contract.ClusterCertificates{
		CA: authorityPair(t), FrontProxyCA: authorityPair(t),
		ServiceAccount: &contract.KeyPair{
			Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
			Key:         contract.NewSecret(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		},
	}
}
