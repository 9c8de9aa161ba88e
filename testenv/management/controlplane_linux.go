package management

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/machineadm/machineadm/testenv/cluster"
)

// policy logs the metadata of every request, once it is answered.
const policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// controllers are those that Cluster API depends on: owned objects and namespaces are deleted, and roles are aggregated.
const controllers = "garbage-collector-controller,namespace-controller,clusterrole-aggregation-controller"

func (c *Cluster) startAPIServer(t testing.TB, more ...string) {
	t.Helper()
	serving := c.serving(t)
	certificate, key := filepath.Join(serving, "tls.crt"), filepath.Join(serving, "tls.key")
	c.APIServer = c.Run(t, "", cluster.Program(t, "kube-apiserver"), append([]string{
		"--etcd-servers=" + c.Etcd,
		// The server refuses to advertise a loopback address. Nothing connects to this one.
		"--bind-address=127.0.0.1", "--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none",
		"--secure-port=" + c.server[len("https://127.0.0.1:"):], "--service-cluster-ip-range=10.96.0.0/16",
		"--tls-cert-file=" + certificate, "--tls-private-key-file=" + key, "--client-ca-file=" + c.write(t, "ca.crt", c.ca.Certificate),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + certificate, "--service-account-signing-key-file=" + key,
		"--authorization-mode=RBAC", "--allow-privileged", "--audit-policy-file=" + c.write(t, "policy.yaml", []byte(policy)), "--audit-log-path=" + c.auditLog(),
		"--audit-log-maxsize=10000", // MiB: one file has all of a test
	}, more...)...)
	c.APIServer.AwaitReady(t, c.server+"/readyz")
}

func (c *Cluster) startControllers(t testing.TB) {
	t.Helper()
	c.ControllerManager = c.Run(t, c.Kubeconfig, cluster.Program(t, "kube-controller-manager"), "--kubeconfig="+c.Kubeconfig,
		"--authentication-kubeconfig="+c.Kubeconfig, "--authorization-kubeconfig="+c.Kubeconfig,
		"--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(c.port(t)), "--leader-elect=false", "--controllers="+controllers)
}
