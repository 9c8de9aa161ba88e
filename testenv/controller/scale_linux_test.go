package controller

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/management"
)

// machines is how many Machines each provider makes data for in BenchmarkWorkers.
var machines = flag.Int("machines", 1000, "Machines of the benchmark")

// scaleLabel has the name of a scale.
const scaleLabel = "scale"

// scale has Machines that wait for their data. Cluster API's core does not run: what is measured is the bootstrap provider.
type scale struct {
	*rig
	name string
	// count is the number of Machines, and clusters the number of Clusters.
	count, clusters int
}

// cluster is the name of the Cluster that a Machine is of.
func (s *scale) cluster(machine int) string {
	return fmt.Sprintf("%s-%03d", s.name, machine%s.clusters)
}

// newCluster makes a Cluster whose infrastructure is not provisioned yet. Its API server is the management cluster's own.
func (s *scale) newCluster(t testing.TB, name string) *clusterv1.Cluster {
	t.Helper()
	c := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: clusterv1.ClusterSpec{
			ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443},
			InfrastructureRef:    clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "None", Name: name},
		},
	}
	require.NoError(t, s.Create(t.Context(), c))
	s.published(t)
	ca := authority.New(t)
	certificate, key := ca.Issue(t, "kubernetes")
	for suffix, data := range map[string]map[string][]byte{
		"-ca":         {"tls.crt": certificate, "tls.key": key},
		"-kubeconfig": {"value": s.administrator(t)},
	} {
		require.NoError(t, s.Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: name + suffix, Labels: map[string]string{clusterv1.ClusterNameLabel: name},
			},
			Type: clusterv1.ClusterSecretType, Data: data,
		}))
	}
	return c
}

// machines makes a Machine and its config, as Cluster API's core does.
func (s *scale) machines(t testing.TB, config *unstructured.Unstructured) {
	t.Helper()
	for i := range s.count {
		name := fmt.Sprintf("%s-machine-%05d", s.name, i)
		labels := map[string]string{clusterv1.ClusterNameLabel: s.cluster(i), scaleLabel: s.name}
		m := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels},
			Spec: clusterv1.MachineSpec{
				ClusterName: s.cluster(i), Version: "v1.36.3",
				Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: config.GroupVersionKind().Group, Kind: config.GetKind(), Name: name,
				}},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "None", Name: name,
				},
			},
		}
		require.NoError(t, s.Create(t.Context(), m))
		c := config.DeepCopy()
		c.SetNamespace("default")
		c.SetName(name)
		c.SetLabels(labels)
		c.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: name, UID: m.UID, Controller: ptr.To(true),
		}})
		require.NoError(t, s.Create(t.Context(), c))
	}
}

// open lets the Machines of a cluster be made.
func (s *scale) open(t testing.TB, c *clusterv1.Cluster) {
	t.Helper()
	c.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	c.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	c.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue, Reason: "Initialized",
		LastTransitionTime: metav1.Now(),
	}}
	require.NoError(t, s.Status().Update(t.Context(), c))
}

// created waits until the status of every config says that its data is there.
func (s *scale) created(t testing.TB, config *unstructured.Unstructured) {
	t.Helper()
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(config.GroupVersionKind().GroupVersion().WithKind(config.GetKind() + "List"))
	done := map[string]bool{}
	limit := time.After(20 * time.Minute)
	for len(done) < s.count {
		// The API server ends watches of a resource that was just defined.
		w, err := s.Watch(t.Context(), &list, client.InNamespace("default"), client.MatchingLabels{scaleLabel: s.name})
		require.NoError(t, err)
		s.follow(t, w, done, limit)
		w.Stop()
	}
}

// follow adds the configs that have data, until all have or the watch ends.
func (s *scale) follow(t testing.TB, w watch.Interface, done map[string]bool, limit <-chan time.Time) {
	t.Helper()
	for len(done) < s.count {
		select {
		case e, ok := <-w.ResultChan():
			o, isObject := e.Object.(*unstructured.Unstructured)
			if !ok || !isObject { // the server ended it, or says that it is too slow
				return
			}
			if made, _, err := unstructured.NestedBool(o.Object, "status", "initialization", "dataSecretCreated"); err == nil && made {
				done[o.GetName()] = true
			}
		case <-limit:
			t.Fatalf("%d of %d configs have data", len(done), s.count)
		}
	}
}

// withoutAdmission ends what core has installed to check Machines, so that core need not run.
func (s *scale) withoutAdmission(t testing.TB, core *management.Process) {
	t.Helper()
	core.Kill(t)
	for _, o := range []client.Object{&admission.MutatingWebhookConfiguration{}, &admission.ValidatingWebhookConfiguration{}} {
		o.SetName("capi-" + map[bool]string{true: "mutating", false: "validating"}[isMutating(o)] + "-webhook-configuration")
		require.NoError(t, s.Delete(t.Context(), o))
	}
}

func isMutating(o client.Object) bool {
	_, is := o.(*admission.MutatingWebhookConfiguration)
	return is
}
