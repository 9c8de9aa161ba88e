package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// locks: a Machine that may initialize the control plane waits for the one that has the lock, whichever provider's it is. It gets
// the lock when it is deleted, and when its holder is deleted or does not exist.
func (r *rig) locks(t *testing.T) {
	r.uninitialized(t, "locked")
	foreign := made(clusterv1.GroupVersion.String(), "Machine", "foreign", map[string]any{"spec": map[string]any{
		"clusterName": "locked", "version": "v1.36.3",
		"infrastructureRef": map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "TestMachine", "name": "foreign"},
		"bootstrap":         map[string]any{"configRef": map[string]any{"apiGroup": bootstrap.Group, "kind": "KubeadmConfig", "name": "foreign"}},
	}})
	r.put(t, foreign)
	waits := func(name, text string) {
		t.Helper()
		r.labeled(t, "locked", name, map[string]string{clusterv1.MachineControlPlaneLabel: ""}, first())
		r.condition(t, bootstrap.ConditionReady, "Unknown", text, name)
	}

	r.lock(t, `{"machineName":"foreign"}`)
	waits("locked-0", "Machine foreign initializes the control plane")
	r.unlock(t)
	r.awaitData(t, "locked-0")

	waits("locked-1", "Machine locked-0 initializes the control plane")
	r.deleting(t, "locked-0")
	r.awaitData(t, "locked-1")

	r.lock(t, "locked-0")
	waits("locked-2", "ConfigMap locked-lock has no readable lock-information: delete it if no Machine initializes the control plane")
	r.unlock(t)
	r.awaitData(t, "locked-2")

	r.lock(t, `{"machineName":"never"}`)
	r.labeled(t, "locked", "locked-3", map[string]string{clusterv1.MachineControlPlaneLabel: ""}, first())
	r.awaitData(t, "locked-3")
	var lock corev1.ConfigMap
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "locked-lock"}, &lock))
	require.JSONEq(t, `{"machineName":"locked-3"}`, lock.Data["lock-information"])
}

// first is the spec of a config of a control plane.
func first() map[string]any {
	return map[string]any{"format": map[string]any{"type": "plain"}, "documents": []any{map[string]any{
		"apiVersion": contract.APIVersion, "kind": contract.KindKubernetesNode, "name": "node", "spec": map[string]any{"provider": "kubeadm"},
	}}}
}

// lock writes the init lock of the cluster.
func (r *rig) lock(t *testing.T, information string) {
	t.Helper()
	r.put(t, made("v1", "ConfigMap", "locked-lock", map[string]any{"data": map[string]any{"lock-information": information}}))
}

func (r *rig) unlock(t *testing.T) {
	t.Helper()
	require.NoError(t, r.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "locked-lock"}}))
}

// uninitialized makes a cluster without a control plane, of which no provider makes one.
func (r *rig) uninitialized(t *testing.T, name string) *clusterv1.Cluster {
	t.Helper()
	r.cluster(t, name)
	require.NoError(t, r.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-ca"}}))
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	require.NoError(t, r.Status().Patch(t.Context(), cluster, merge(
		`{"status":{"initialization":{"controlPlaneInitialized":null},"conditions":[]}}`)))
	return cluster
}
