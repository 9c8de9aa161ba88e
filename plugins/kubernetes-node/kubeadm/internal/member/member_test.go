package member

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// pair is a certificate and its key.
type pair struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	cert, pem   []byte // PEM
}

func newPair(t *testing.T, name string, by *pair) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: []string{"system:nodes"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: by == nil,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, DNSNames: []string{"kubernetes", "localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	bytes, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return pair{
		certificate: certificate, key: key,
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes}),
	}
}

// conf is a kubeconfig in the form that Kubernetes writes.
func conf(server string, ca pair, client string) string {
	return fmt.Sprintf(`apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: %s
    server: %s
  name: default-cluster
contexts:
- context:
    cluster: default-cluster
    user: default-auth
  name: default-context
current-context: default-context
kind: Config
users:
- name: default-auth
  user:
    %s
`, base64.StdEncoding.EncodeToString(ca.cert), server, client)
}

func rotated() string {
	return "client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem\n    client-key: /var/lib/kubelet/pki/kubelet-client-current.pem"
}

func inline(p pair) string {
	return "client-certificate-data: " + base64.StdEncoding.EncodeToString(p.cert) + "\n    client-key-data: " + base64.StdEncoding.EncodeToString(p.pem)
}

func TestObserve(t *testing.T) {
	t.Parallel()
	ca := newPair(t, "kubernetes", nil)
	leaf := newPair(t, "system:node:node-1", &ca)
	for name, c := range map[string]struct {
		files map[string]string
		want  Observed
	}{
		"nothing": {nil, Observed{}},
		"worker": {map[string]string{
			"/etc/kubernetes/kubelet.conf":                 conf("https://api.example.com:6443", ca, rotated()),
			"/var/lib/kubelet/pki/kubelet-client-2026.pem": string(leaf.cert) + string(leaf.pem),
			"/etc/kubernetes/pki/ca.crt":                   string(ca.cert),
		}, Observed{
			Node: "node-1", Endpoint: "api.example.com:6443", CAHash: CertificateHash(ca.cert), Rotated: true,
			Left: []string{"/etc/kubernetes/kubelet.conf"}, Certificates: []string{"/etc/kubernetes/pki/ca.crt"},
		}},
		"a control plane whose kubelet uses its own API server": {map[string]string{
			"/etc/kubernetes/kubelet.conf":                  conf("https://10.0.0.1:6443", ca, inline(leaf)),
			"/etc/kubernetes/admin.conf":                    conf("https://api.example.com:6443", ca, ""),
			"/etc/kubernetes/manifests/kube-apiserver.yaml": "",
			"/etc/kubernetes/manifests/mine.yaml":           "",
			"/etc/kubernetes/pki/etcd/ca.key":               "",
		}, Observed{
			Node: "node-1", Endpoint: "api.example.com:6443", CAHash: CertificateHash(ca.cert), ControlPlane: true,
			Left:         []string{"/etc/kubernetes/kubelet.conf", "/etc/kubernetes/admin.conf", "/etc/kubernetes/manifests/kube-apiserver.yaml"},
			Certificates: []string{"/etc/kubernetes/pki/etcd/ca.key"},
		}},
		"a kubelet without a certificate": {map[string]string{
			"/etc/kubernetes/kubelet.conf":           conf("https://api.example.com:6443", ca, rotated()),
			"/etc/kubernetes/bootstrap-kubelet.conf": "",
		}, Observed{Rotated: true, Left: []string{"/etc/kubernetes/kubelet.conf", "/etc/kubernetes/bootstrap-kubelet.conf"}}},
		"not a node": {map[string]string{
			"/etc/kubernetes/kubelet.conf": conf("https://api.example.com:6443", ca, inline(ca)),
		}, Observed{Left: []string{"/etc/kubernetes/kubelet.conf"}}},
		"an empty file": {map[string]string{"/etc/kubernetes/kubelet.conf": ""}, Observed{Left: []string{"/etc/kubernetes/kubelet.conf"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := machinetest.New(t)
			f.WriteFiles(t, c.files)
			if _, ok := c.files["/var/lib/kubelet/pki/kubelet-client-2026.pem"]; ok {
				require.NoError(t, f.Machine.FS.Symlink("/var/lib/kubelet/pki/kubelet-client-2026.pem", rotatedCert))
			}
			got, err := Observe(f.Machine, "/etc/kubernetes/pki")
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestHashes(t *testing.T) {
	t.Parallel()
	ca := newPair(t, "kubernetes", nil)
	require.Equal(t, CertificateHash(ca.cert), AuthorityHash([]byte(conf("https://a", ca, ""))))
	require.Equal(t, CertificateHash(ca.cert), CertificateHash(bytes.Join([][]byte{ca.pem, ca.cert}, nil)))
	require.Empty(t, AuthorityHash([]byte("x")))
	require.Empty(t, CertificateHash(ca.pem))
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", CertificateHash(ca.cert))
	require.Equal(t, `C:\etc\kubernetes\x`, Path("windows", "/etc/kubernetes/x"))
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const kubelet, boot, admin = "/etc/kubernetes/kubelet.conf", "/etc/kubernetes/bootstrap-kubelet.conf", "/etc/kubernetes/admin.conf"
	worker := Identity{Role: settings.Worker, Node: "n", Endpoint: "api:6443", CAHashes: []string{"sha256:a"}}
	creator := Identity{Role: settings.Init, Node: "n", Endpoint: "api"}
	further := Identity{Role: settings.Join, Node: "n", Endpoint: "api", CAHashes: []string{"sha256:a"}}
	node := Observed{Node: "n", Endpoint: "API:6443", CAHash: "sha256:a", Rotated: true, Left: []string{kubelet}}
	control := node
	control.ControlPlane = true
	with := func(o Observed, change func(*Observed)) Observed {
		change(&o)
		return o
	}
	begun := func(i Identity) *Begun { return &Begun{Identity: i, Settings: "these"} }
	other := func(i Identity) *Begun { return &Begun{Identity: i, Settings: "others"} }
	for name, c := range map[string]struct {
		want  Identity
		have  Observed
		begun *Begun
		step  Step
		field string // of a refusal
		says  string // in the refusal or the warning
	}{
		"nothing there":                   {worker, Observed{}, nil, Run, "", ""},
		"certificates by hand":            {creator, Observed{Certificates: []string{"/etc/kubernetes/pki/ca.crt"}}, nil, Run, "", ""},
		"refused in preflight":            {worker, Observed{}, begun(creator), Run, "", ""},
		"a worker":                        {worker, node, nil, Nothing, "", ""},
		"the control plane that created":  {creator, control, nil, Nothing, "", ""},
		"a further control plane":         {further, control, nil, Nothing, "", ""},
		"of another name":                 {worker, with(node, func(o *Observed) { o.Node = "m" }), nil, 0, "spec.node.name", "with the name m"},
		"of another role":                 {worker, control, nil, 0, "spec.role", "as a control plane"},
		"a worker that is to be control":  {further, node, nil, 0, "spec.role", "as a worker"},
		"of another cluster":              {worker, with(node, func(o *Observed) { o.CAHash = "sha256:b" }), nil, 0, "spec.cluster", "another cluster already, with the certificate authority sha256:b"},
		"created elsewhere":               {creator, with(control, func(o *Observed) { o.Endpoint = "other:6443" }), nil, 0, "spec.cluster.endpoint", "at other:6443"},
		"at another address":              {worker, with(node, func(o *Observed) { o.Endpoint = "other:6443" }), nil, Nothing, "", "another address of the cluster, other:6443"},
		"leftovers of another hand":       {worker, Observed{Left: []string{boot}}, nil, 0, "", boot + " exists"},
		"a worker that began":             {worker, Observed{Left: []string{boot}, Rotated: true}, begun(worker), Reset, "", ""},
		"a worker that joined by itself":  {worker, with(node, func(o *Observed) { o.Left = []string{kubelet, boot} }), begun(worker), Finish, "", ""},
		"a worker of other settings":      {worker, node, other(worker), Reset, "", ""},
		"a creation of other settings":    {creator, control, other(creator), Reset, "", ""},
		"other settings, and etcd":        {further, control, other(further), 0, "", "member of the cluster's etcd"},
		"begun by an earlier release":     {worker, node, &Begun{Identity: worker}, Finish, "", ""},
		"an interrupted reset":            {worker, node, &Begun{Identity: worker, Resetting: true}, Reset, "", ""},
		"a reset that ended":              {worker, Observed{}, &Begun{Identity: worker, Resetting: true}, Run, "", ""},
		"an interrupted creation":         {creator, Observed{Node: "n", Endpoint: "api:6443", ControlPlane: true, Left: []string{kubelet, admin}}, begun(creator), Reset, "", ""},
		"only certificates":               {creator, Observed{Certificates: []string{"/etc/kubernetes/pki/ca.key"}}, begun(creator), Reset, "", ""},
		"certificates of the document":    {creator, Observed{Certificates: []string{"/own"}}, begun(creator), Run, "", ""},
		"a creation without its add-ons":  {creator, control, begun(creator), Finish, "", ""},
		"began for another document":      {worker, Observed{Left: []string{boot}}, begun(creator), 0, "", "another node"},
		"certificates that reset deletes": {creator, Observed{Left: []string{admin}}, &Begun{Identity: creator, Foreign: true}, 0, "", "did not create"},
		"a control plane before etcd":     {further, Observed{Left: []string{admin}}, begun(further), Reset, "", ""},
		"a control plane in etcd":         {further, Observed{Left: []string{admin, boot}}, begun(further), 0, "", "member of the cluster's etcd"},
		"a control plane that may be one": {further, control, begun(further), 0, "", "member of the cluster's etcd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step, warnings, err := Decide(c.want, "these", c.have, c.begun, []string{"/own"}, "/state/kubeadm")
			if err == nil {
				assert.Equal(t, c.step, step)
				assert.Equal(t, c.says != "", len(warnings) > 0)
				if len(warnings) > 0 {
					assert.Contains(t, warnings[0].Message, c.says)
				}
				return
			}
			e := pluginv1.AsError(err)
			assert.Equal(t, pluginv1.CodePrecondition, e.Code)
			assert.True(t, e.Final)
			assert.Contains(t, e.Error(), c.says)
			require.NotEmpty(t, c.says, "%v", err)
			if c.field != "" {
				assert.Equal(t, c.field, e.Violations[0].Field)
			}
			assert.NotEmpty(t, e.Hint)
		})
	}
}

// TestAlone asks a real server over TLS with a client certificate, as an API server and as an etcd.
func TestAlone(t *testing.T) {
	t.Parallel()
	ca := newPair(t, "kubernetes", nil)
	serving, admin := newPair(t, "kube-apiserver", &ca), newPair(t, "kubernetes-super-admin", &ca)
	for name, c := range map[string]struct {
		data        bool
		nodes, etcd string
		says        string
		final       bool
	}{
		"etcd has no data":         {false, "", "", "", false},
		"no other node":            {true, `{"items":[{"metadata":{"name":"n"}}]}`, `{"members":[{}]}`, "", false},
		"no node":                  {true, `{"items":[]}`, `{"members":[{}]}`, "", false},
		"another node":             {true, `{"items":[{"metadata":{"name":"n"}},{"metadata":{"name":"m"}}]}`, `{"members":[{}]}`, "other nodes have joined", true},
		"another member of etcd":   {true, `{"items":[]}`, `{"members":[{},{}]}`, "other nodes have joined", true},
		"an API server that fails": {true, "", "", "status 503", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, "kubernetes-super-admin", r.TLS.PeerCertificates[0].Subject.CommonName)
				answer := map[string]string{"/api/v1/nodes": c.nodes, "/v3/cluster/member/list": c.etcd}[r.URL.Path]
				if answer == "" {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				_, _ = w.Write([]byte(answer)) // the client notices
			}))
			roots := x509.NewCertPool()
			roots.AddCert(ca.certificate)
			certificate, err := tls.X509KeyPair(serving.cert, serving.pem)
			require.NoError(t, err)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert}
			server.StartTLS()
			t.Cleanup(server.Close)
			f := machinetest.New(t)
			f.WriteFiles(t, map[string]string{
				"/etc/kubernetes/super-admin.conf":              conf("https://unresolvable.invalid:6443", ca, inline(admin)),
				"/etc/kubernetes/controller-manager.conf":       conf(server.URL, ca, ""),
				"/etc/kubernetes/manifests/kube-apiserver.yaml": "",
				"/etc/kubernetes/manifests/etcd.yaml":           "    - --listen-client-urls=" + server.URL + ",https://10.0.0.1:2379\n",
				"/etc/kubernetes/pki/etcd/ca.crt":               string(ca.cert),
				"/etc/kubernetes/pki/apiserver-etcd-client.crt": string(admin.cert),
				"/etc/kubernetes/pki/apiserver-etcd-client.key": string(admin.pem),
			})
			if c.data {
				f.WriteFiles(t, map[string]string{"/var/lib/etcd/member/wal": ""})
			}
			err = Alone(t.Context(), f.Machine, "n", "/var/lib/etcd", "/etc/kubernetes/pki")
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			e := pluginv1.AsError(err)
			require.Equal(t, pluginv1.CodePrecondition, e.Code)
			require.Contains(t, e.Message, c.says)
			require.Equal(t, c.final, e.Final)
			require.NotEmpty(t, e.Hint)
		})
	}
	f := machinetest.New(t)
	f.WriteFiles(t, map[string]string{"/var/lib/etcd/member/wal": ""})
	require.NoError(t, Alone(t.Context(), f.Machine, "n", "", "")) // no API server was started
	f.WriteFiles(t, map[string]string{"/etc/kubernetes/manifests/kube-apiserver.yaml": ""})
	require.ErrorContains(t, Alone(t.Context(), f.Machine, "n", "", ""), "external etcd")
	require.ErrorContains(t, Alone(t.Context(), f.Machine, "n", "/var/lib/etcd", ""), "credentials of the administrator")
}

func FuzzKubeconfig(f *testing.F) {
	f.Add("- cluster:\n    server: https://a:6443\n")
	f.Add("certificate-authority-data: ====\nserver: [")
	f.Fuzz(func(t *testing.T, text string) {
		if conf := parseKubeconfig([]byte(text)); strings.Contains(conf.Server, "\n") {
			t.Errorf("%q", conf.Server)
		}
		_ = AuthorityHash([]byte(text))
	})
}
