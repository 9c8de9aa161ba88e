package controller

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/management"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	// dataSuffix ends the name of a Secret with the data of a config.
	dataSuffix = "-machineadm-data"

	account = "system:serviceaccount:machineadm-system:machineadm-manager"
	limit   = 10 * time.Minute // peers try again every 20 to 60 s
)

// rig is a management cluster with every provider, and our manager.
type rig struct {
	*management.Cluster
	client.WithWatch
	// kubeconfig is the kubeconfig of the manager's service account.
	kubeconfig string
	// workload is a kubeconfig of a user of its own, for the clusters that a test makes itself; empty for the administrator's.
	workload string
	binary   string
	manager  *management.Process
	// health, metrics and server are addresses of the manager.
	health, metrics, server string
	// namespace has the objects that a test makes itself.
	namespace string
	// ca is the authority of clusters that a test makes itself.
	ca authority.Authority
}

// start runs a management cluster with the providers that a test needs.
func start(t testing.TB, providers ...func(*management.Cluster, testing.TB) *management.Process) *rig {
	t.Helper()
	return begin(t, management.Start(t), providers...)
}

// begin is start in a cluster.
func begin(t testing.TB, c *management.Cluster, providers ...func(*management.Cluster, testing.TB) *management.Process) *rig {
	t.Helper()
	r := prepared(t, c, providers...)
	t.Cleanup(func() { r.unforbidden(t) })
	r.run(t)
	return r
}

// prepared is everything but our manager.
func prepared(t testing.TB, c *management.Cluster, providers ...func(*management.Cluster, testing.TB) *management.Process) *rig {
	t.Helper()
	built := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), built, map[string]string{"manager": "host/cmd/manager"}))
	for _, provide := range providers {
		provide(c, t)
	}
	c.Install(t, management.Render(t, configuration(t)))
	return &rig{
		Cluster: c, WithWatch: c.Client(t, clusterv1.AddToScheme, bootstrap.AddToScheme), namespace: "default", binary: filepath.Join(built, "manager"),
		kubeconfig: c.User(t, account, "system:serviceaccounts", "system:serviceaccounts:machineadm-system"),
	}
}

// unforbidden checks that the roles of the manager let it do all that it has tried, but with kinds for which a case gives it no role,
// or a role that comes late.
func (r *rig) unforbidden(t testing.TB) {
	t.Helper()
	for _, q := range r.Audit(t) {
		if q.User.Name == account && q.Response.Code == http.StatusForbidden && q.Object.Resource != "deployments" && !strings.HasPrefix(q.Object.Resource, "httpprox") {
			t.Errorf("forbidden: %s %s", q.Verb, q.URI)
		}
	}
}

// everything are all providers of Cluster API.
func everything() []func(*management.Cluster, testing.TB) *management.Process {
	return []func(*management.Cluster, testing.TB) *management.Process{
		(*management.Cluster).Core, (*management.Cluster).KubeadmBootstrap, (*management.Cluster).KubeadmControlPlane,
		(*management.Cluster).InMemory,
	}
}

func configuration(t testing.TB) string {
	t.Helper()
	root, err := tools.Root(".")
	require.NoError(t, err)
	return root + "/host/controller/config/default"
}

// run starts our manager, and waits until it is ready.
func (r *rig) run(t testing.TB, arguments ...string) {
	t.Helper()
	r.launch(t, arguments...)
	r.awaitManager(t)
}

// launch starts our manager.
func (r *rig) launch(t testing.TB, arguments ...string) {
	t.Helper()
	r.health, r.metrics = r.Address(t), r.Address(t)
	r.again(t, arguments...)
}

// again launches a manager at the addresses of the one before, which has ended.
func (r *rig) again(t testing.TB, arguments ...string) {
	t.Helper()
	r.manager = r.Run(t, r.kubeconfig, r.binary, append([]string{
		"--health-addr=" + r.health, "--diagnostics-address=" + r.metrics, "--insecure-diagnostics", "--v=1",
	}, arguments...)...)
}

func (r *rig) awaitManager(t testing.TB) {
	t.Helper()
	r.manager.AwaitReady(t, "http://"+r.health+"/readyz")
}

// administrator is a kubeconfig that may do everything.
func (r *rig) administrator(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile(r.Kubeconfig)
	require.NoError(t, err)
	return text
}

// apply applies manifests of testdata.
func (r *rig) apply(t testing.TB, name string) {
	t.Helper()
	manifests, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	r.Install(t, manifests)
}

// running waits until so many Machines are in the phase Running.
func (r *rig) running(t testing.TB, want int) []clusterv1.Machine {
	t.Helper()
	var machines clusterv1.MachineList
	management.Await(t, r, limit, &machines, func() error {
		var configs bootstrap.MachineBootstrapConfigList
		running := 0
		for i := range machines.Items {
			if machines.Items[i].Status.GetTypedPhase() == clusterv1.MachinePhaseRunning {
				running++
			}
		}
		if running == want {
			return nil
		}
		if err := r.List(t.Context(), &configs); err != nil {
			return err
		}
		return &unfinished{running, want, configs.Items}
	})
	return machines.Items
}

// data is the Secret with the data of a config.
func (r *rig) data(t testing.TB, namespace, config string) *corev1.Secret {
	t.Helper()
	return r.secret(t, namespace, config+dataSuffix)
}

func (r *rig) secret(t testing.TB, namespace, name string) *corev1.Secret {
	t.Helper()
	var secret corev1.Secret
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &secret))
	return &secret
}
