package management

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/cluster"
)

// Cluster is a management cluster: etcd, API server and the controllers of Kubernetes that it needs.
type Cluster struct {
	// Config and the file Kubeconfig are an administrator's, which RBAC allows everything.
	Config     *rest.Config
	Kubeconfig string
	// Etcd is the URL of etcd, where /v3/kv/range shows what is stored.
	Etcd string
	// Dir is a temporary directory.
	Dir string
	// APIServer, ControllerManager and EtcdServer can be killed by a test.
	APIServer, ControllerManager, EtcdServer *Process

	ca     authority.Authority
	server string       // URL of the API server
	ports  int          // the first of the cluster's
	used   atomic.Int64 // how many are used
}

// Ports of clusters are below those that the in-memory provider has, and below those that the kernel gives to connections.
const (
	firstPort   = 10000
	lastPort    = 18900
	portsOfEach = 100
)

// Start runs a management cluster until the test ends, with further arguments of its API server. There can be several, with ports of
// their own.
func Start(t testing.TB, apiServer ...string) *Cluster {
	t.Helper()
	require.Tier(t, require.Cluster)
	require.Root(t)
	if !isPrivate() {
		t.Fatal("the tests share the machine's network: call management.Main in TestMain")
	}
	c := &Cluster{Dir: t.TempDir(), ca: authority.New(t), ports: reserve(t)}
	etcd, peer := c.port(t), c.port(t)
	c.Etcd = fmt.Sprintf("http://127.0.0.1:%d", etcd)
	c.server = fmt.Sprintf("https://127.0.0.1:%d", c.port(t))
	c.Kubeconfig = c.User(t, "administrator", "system:masters")
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // the server alone limits tests
	c.Config = config
	peers := fmt.Sprintf("http://127.0.0.1:%d", peer)
	c.EtcdServer = c.Run(t, "", cluster.Program(t, "etcd"), "--data-dir="+filepath.Join(c.Dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+c.Etcd, "--advertise-client-urls="+c.Etcd,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers)
	c.startAPIServer(t, apiServer...)
	c.startControllers(t)
	return c
}

// reserve returns the first port of a range. A listener on it keeps others out while the test runs.
func reserve(t testing.TB) int {
	t.Helper()
	for port := firstPort; port <= lastPort; port += portsOfEach {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
		return port
	}
	t.Fatal("no ports are left for another cluster")
	return 0
}

// port returns one that nothing uses.
func (c *Cluster) port(t testing.TB) int {
	t.Helper()
	next := int(c.used.Add(1))
	if next >= portsOfEach {
		t.Fatalf("the cluster has used its %d ports", portsOfEach)
	}
	return c.ports + next
}

// Address returns an address of the loopback device with a port that nothing uses.
func (c *Cluster) Address(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", c.port(t))
}

// write makes a file of the cluster, and returns its path.
func (c *Cluster) write(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(c.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serving makes a certificate for servers on the loopback device, and returns the directory with tls.crt and tls.key.
func (c *Cluster) serving(t testing.TB) string {
	t.Helper()
	certificate, key := c.ca.Issue(t, "localhost", func(x *x509.Certificate) {
		x.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	})
	c.write(t, "serving/tls.key", key)
	return filepath.Dir(c.write(t, "serving/tls.crt", certificate))
}

// User makes a kubeconfig file for a user with a client certificate, and returns its path. RBAC decides what the user may
// do. That of a service account is system:serviceaccount:NAMESPACE:NAME.
func (c *Cluster) User(t testing.TB, name string, groups ...string) string {
	t.Helper()
	certificate, key := c.ca.Issue(t, name, func(x *x509.Certificate) {
		x.Subject = pkix.Name{CommonName: name, Organization: groups}
		x.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	})
	config := api.NewConfig()
	config.Clusters["management"] = &api.Cluster{Server: c.server, CertificateAuthorityData: c.ca.Certificate}
	config.AuthInfos[name] = &api.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	config.Contexts["management"] = &api.Context{Cluster: "management", AuthInfo: name}
	config.CurrentContext = "management"
	text, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp(c.Dir, "*.kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return c.write(t, filepath.Base(file.Name()), text)
}

// Run runs a program with a kubeconfig file, until the test ends or ends it.
func (c *Cluster) Run(t testing.TB, kubeconfig, path string, arguments ...string) *Process {
	t.Helper()
	return start(t, c.Dir, path, []string{"KUBECONFIG=" + kubeconfig, "POD_IP=127.0.0.1"}, arguments...)
}
