//go:build linux

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/cri/critest"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/member"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

const (
	token          = "abcdef.c4n4rytoken12345"
	certificateKey = "c4f4d4c4f4d4c4f4d4c4f4d4c4f4d4c4f4d4c4f4d4c4f4d4c4f4d4c4f4d4c4f4"
	journal        = "journalctl --unit kubelet --lines 300 --no-pager --output short-iso"
	askVersion     = "kubeadm version --output json"
	reset          = "kubeadm reset --force --cert-dir /etc/kubernetes/pki"
)

// document decodes a spec in YAML.
func decode(t testing.TB, spec string) v1alpha1.KubernetesNode {
	t.Helper()
	data, err := document.JSON("spec", []byte(spec))
	require.NoError(t, err)
	var doc v1alpha1.KubernetesNode
	doc.Metadata.Name = "node"
	require.Empty(t, document.Unmarshal(data, &doc.Spec))
	return doc
}

// identity is a certificate that is the authority of a cluster and the certificate of the node at once, with its key.
type identity struct{ cert, key, hash string }

func newIdentity(t testing.TB, node string) identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "system:node:" + node}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	bytes, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	i := identity{
		cert: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		key:  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes})),
	}
	i.hash = member.CertificateHash([]byte(i.cert))
	return i
}

const rotated = "/var/lib/kubelet/pki/kubelet-client-current.pem"

// joined are the files of a node.
func (i identity) joined() map[string]string {
	return map[string]string{"/etc/kubernetes/kubelet.conf": i.kubeconfig(rotated), rotated: i.cert + i.key, "/etc/kubernetes/pki/ca.crt": i.cert}
}

// created are the files of the control plane that created a cluster.
func (i identity) created() map[string]string {
	files := i.joined()
	files["/etc/kubernetes/admin.conf"] = i.kubeconfig(rotated)
	files["/etc/kubernetes/manifests/kube-apiserver.yaml"] = "the API server\n"
	files["/etc/kubernetes/manifests/etcd.yaml"] = "etcd\n"
	return files
}

func (i identity) kubeconfig(certificate string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    certificate-authority-data: %s\n    server: https://api.example.com:6443\n  name: kubernetes\n"+
		"contexts:\n- context:\n    cluster: kubernetes\n    user: node\n  name: node\ncurrent-context: node\nusers:\n- name: node\n  user:\n    client-certificate: %s\n    client-key: %[2]s\n", base64.StdEncoding.EncodeToString([]byte(i.cert)), certificate)
}

func (i identity) worker() string {
	return "role: worker\nkubernetesVersion: v1.37.1\ncluster: {endpoint: api.example.com:6443}\n" +
		"discovery: {token: {value: " + token + "}, caCertHashes: ['" + i.hash + "']}\n"
}

const creator = "role: controlPlaneInit\nkubernetesVersion: v1.37.1\ncluster: {endpoint: api.example.com:6443}\n"

// fixture is a machine that is ready for a node.
func fixture(t testing.TB, r *critest.Runtime) *machinetest.Fixture {
	t.Helper()
	f := machinetest.New(t)
	f.Kernel.Parameters["net/ipv4/ip_forward"] = "1"
	f.Services.Put("kubelet", machine.ServiceState{Enabled: true, Active: "activating"})
	f.Commands.On(askVersion, machine.Result{Stdout: []byte(`{"clientVersion": {"gitVersion": "v1.37.1", "buildDate": "2026-08-01T00:00:00Z"}}`)})
	f.Commands.On("kubelet --version", machine.Result{Stdout: []byte("Kubernetes v1.37.1\n")})
	for _, program := range []string{"conntrack", "cp", "crictl", "ip", "iptables", "losetup", "mount", "nsenter"} {
		f.Commands.On(program, machine.Result{})
	}
	f.Commands.On(journal, machine.Result{Stdout: []byte("kubelet: token " + token + " refused\n")})
	socket := filepath.Join(f.Root, "run/containerd/containerd.sock")
	require.Less(t, len(socket), 108, "give the test a shorter name")
	critest.Serve(t, socket, r)
	return f
}

// installs makes kubeadm leave files.
func installs(t testing.TB, f *machinetest.Fixture, line string, files map[string]string) {
	t.Helper()
	f.Commands.OnFunc(line, func(context.Context, machine.Command) (machine.Result, error) {
		f.WriteFiles(t, files)
		return machine.Result{Stdout: []byte("[preflight] Running pre-flight checks\n[bootstrap-token] Using token: " + token + "\n")}, nil
	})
}

// recorder keeps what a change reports.
type recorder struct{ lines []string }

func (r *recorder) Report(line string)     { r.lines = append(r.lines, line) }
func (r *recorder) Warn(_, line string)    { r.lines = append(r.lines, line) }
func (*recorder) RequestReboot(sdk.Reboot) {}
func (r *recorder) String() string         { return strings.Join(r.lines, "\n") }

// apply makes the changes of a plan.
func apply(t testing.TB, p sdk.Plan) (*recorder, error) {
	t.Helper()
	r := &recorder{}
	for _, change := range p.Changes {
		if err := change.Do(t.Context(), r); err != nil {
			return r, err
		}
	}
	return r, nil
}

func ids(p sdk.Plan) string {
	var all []string
	for _, change := range p.Changes {
		all = append(all, change.ID)
	}
	return strings.Join(all, " ")
}
