package controller

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/management"
)

// TestBeside: a ClusterClass whose workers are ours, then core that reads our kinds by its contract v1beta1. All the while there
// is a cluster of kubeadm alone. None of its objects changes, from before our manager is installed until it is removed.
func TestBeside(t *testing.T) {
	t.Parallel()
	var core *management.Process
	var before map[string]string
	providers := everything()
	providers[0] = func(c *management.Cluster, t testing.TB) *management.Process {
		core = c.Core(t)
		return core
	}
	r := start(t, append(providers, func(c *management.Cluster, _ testing.TB) *management.Process {
		before = kubeadmCluster(t, c)
		return nil
	})...)
	r.manager.Stop(t)
	r.run(t, "--sync-period=5s")
	require.Len(t, before, 5, "a control plane, a template and a config of each machine")

	if !t.Run("a variable of a class", r.class) {
		return
	}
	t.Run("a pool", r.machinePool)
	t.Run("contract v1beta1", func(t *testing.T) {
		core.Kill(t)
		for _, name := range []string{"machinebootstrapconfigs", "machinebootstrapconfigtemplates"} {
			definition := made("apiextensions.k8s.io/v1", "CustomResourceDefinition", name+"."+bootstrap.Group, map[string]any{})
			require.NoError(t, r.Patch(t.Context(), definition, merge(`{"metadata":{"labels":{"cluster.x-k8s.io/v1beta2":null}}}`)))
		}
		core = r.Core(t)
		r.topology(t, `[{"op":"replace","path":"/spec/topology/workers/machineDeployments/0/replicas","value":2}]`)
		r.workers(t, "classy", 2, "vm.max_map_count: \"262144\"")
	})
	r.unchanged(t, before)
	t.Run("removed", func(t *testing.T) {
		r.resynced(t, 2)
		r.manager.Stop(t)
		r.remove(t)
	})
	r.unchanged(t, before)
	for _, q := range r.Audit(t) {
		if q.User.Name == account && strings.HasPrefix(q.Object.Resource, "kubeadm") {
			require.Contains(t, []string{"get", "list", "watch"}, q.Verb, "%+v", q)
		}
	}
}

// kubeadmCluster makes a cluster of kubeadm alone, and returns its objects of kubeadm.
func kubeadmCluster(t *testing.T, c *management.Cluster) map[string]string {
	t.Helper()
	manifests, err := os.ReadFile("../management/testdata/cluster.yaml")
	require.NoError(t, err)
	c.Install(t, manifests)
	r := &rig{Cluster: c, WithWatch: c.Client(t, clusterv1.AddToScheme, bootstrap.AddToScheme)}
	var controlPlanes unstructured.UnstructuredList
	controlPlanes.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmControlPlaneList",
	})
	var machines clusterv1.MachineList
	management.Await(t, r, limit, &machines, func() error {
		ready := 0
		for i := range machines.Items {
			if clusterReady(&machines.Items[i]) {
				ready++
			}
		}
		if ready != 3 {
			return fmt.Errorf("%d Machines are available", ready)
		}
		return nil
	})
	management.Await(t, r, limit, &controlPlanes, func() error {
		for i := range controlPlanes.Items {
			if err := settled(&controlPlanes.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return r.kubeadmObjects(t)
}

func clusterReady(m *clusterv1.Machine) bool {
	for _, c := range m.Status.Conditions {
		if c.Type == clusterv1.MachineAvailableCondition {
			return c.Status == "True"
		}
	}
	return false
}

// settled says what a control plane still waits for: each of these conditions is true once, and then stays so.
func settled(controlPlane *unstructured.Unstructured) error {
	want := map[string]bool{"Available": true, "MachinesReady": true, "MachinesUpToDate": true}
	conditions, _, _ := unstructured.NestedSlice(controlPlane.Object, "status", "conditions") // none at first
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["status"] == "True" {
			delete(want, fmt.Sprint(c["type"]))
		}
	}
	if len(want) > 0 {
		return fmt.Errorf("not true: %v", want)
	}
	return nil
}

// kubeadmObjects are the objects of kubeadm's providers, by kind and name.
func (r *rig) kubeadmObjects(t *testing.T) map[string]string {
	t.Helper()
	objects := map[string]string{}
	for kind, group := range map[string]string{
		"KubeadmConfig": "bootstrap", "KubeadmConfigTemplate": "bootstrap", "KubeadmControlPlane": "controlplane",
	} {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: group + ".cluster.x-k8s.io", Version: "v1beta2", Kind: kind + "List"})
		require.NoError(t, r.List(t.Context(), &list))
		for i := range list.Items {
			text, err := json.Marshal(list.Items[i].Object)
			require.NoError(t, err)
			objects[kind+"/"+list.Items[i].GetName()] = string(text)
		}
	}
	return objects
}

// unchanged checks that objects are what they were, with their resource versions.
func (r *rig) unchanged(t *testing.T, before map[string]string) {
	t.Helper()
	now := r.kubeadmObjects(t)
	for name, text := range before {
		require.Equal(t, text, now[name], name)
	}
}

// remove deletes all that the manifests of our manager install.
func (r *rig) remove(t *testing.T) {
	t.Helper()
	objects, err := management.Objects(management.Render(t, configuration(t)))
	require.NoError(t, err)
	for _, o := range objects {
		if err := r.Delete(t.Context(), o, client.PropagationPolicy("Background")); !apierrors.IsNotFound(err) {
			require.NoError(t, err, "%s %s", o.GetKind(), o.GetName())
		}
	}
}
