package management

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	needs "github.com/machineadm/machineadm/internal/require"
)

// startProviders runs all managers, and says what each took.
func startProviders(t *testing.T, c *Cluster) {
	t.Helper()
	for _, provide := range []func(testing.TB) *Process{c.Core, c.KubeadmBootstrap, c.KubeadmControlPlane, c.InMemory} {
		began := time.Now()
		p := provide(t)
		t.Logf("%s is ready after %s", p.cmd.Path, time.Since(began))
	}
}

// awaitMachines waits until so many machines run and the cluster is available.
func awaitMachines(t *testing.T, k client.WithWatch, want int) {
	t.Helper()
	var clusters clusterv1.ClusterList
	Await(t, k, 3*time.Minute, &clusters, func() error {
		if c := clusters.Items[0]; !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.ClusterAvailableCondition) {
			return fmt.Errorf("conditions %v", c.Status.Conditions)
		}
		return nil
	})
	var machines clusterv1.MachineList
	Await(t, k, 3*time.Minute, &machines, func() error {
		running, states := 0, ""
		for _, m := range machines.Items {
			states += fmt.Sprintf("%s %s %v\n", m.Name, m.Status.Phase, m.Status.Conditions)
			if m.Status.Phase == string(clusterv1.MachinePhaseRunning) && m.Status.NodeRef.IsDefined() {
				running++
			}
		}
		return unless(running, want, "machines run\n"+states)
	})
}

// TestWorkers: kubeadm's providers bring up a cluster in memory. TestBeside of testenv/controller needs that too.
func TestWorkers(t *testing.T) {
	needs.Campaign(t)
	c := Start(t)
	startProviders(t, c)
	manifests, err := os.ReadFile("testdata/cluster.yaml")
	require.NoError(t, err)
	began := time.Now()
	c.Install(t, manifests)
	k := c.Client(t, clusterv1.AddToScheme)
	awaitMachines(t, k, 3)
	t.Logf("the machines run after %s", time.Since(began))
	checkWebhooks(t, k)
}

// checkWebhooks: an object of an earlier version is converted, and a network that the schema allows is refused.
func checkWebhooks(t *testing.T, k client.Client) {
	t.Helper()
	earlier := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster"}}
	require.NoError(t, k.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "first"}, earlier))
	version, _, err := unstructured.NestedString(earlier.Object, "spec", "infrastructureRef", "apiVersion")
	require.NoError(t, err)
	require.Equal(t, "infrastructure.cluster.x-k8s.io/v1beta2", version)
	cluster := &clusterv1.Cluster{}
	require.NoError(t, k.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "first"}, cluster))
	refused := &clusterv1.Cluster{Spec: cluster.Spec}
	refused.Namespace, refused.Name = "default", "refused"
	refused.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.0.0.0/99"}
	require.ErrorContains(t, k.Create(t.Context(), refused), "admission webhook")
}
