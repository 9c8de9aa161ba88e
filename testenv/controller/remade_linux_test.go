package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// referring is the spec of a config that refers to a Sysctl.
func referring(name string) map[string]any {
	return map[string]any{"pluginRefs": []any{map[string]any{"apiGroup": contract.Group, "kind": contract.KindSysctl, "name": name}}}
}

// sysctl makes a Sysctl.
func (r *rig) sysctl(t *testing.T, name string) {
	t.Helper()
	r.put(t, made(contract.APIVersion, contract.KindSysctl, name, map[string]any{"spec": map[string]any{"parameters": map[string]any{"a.b": "1"}}}))
}

// remade: data that was deleted is made again. While it cannot be, the status says nothing else.
func (r *rig) remade(t *testing.T) {
	r.sysctl(t, "remade")
	r.machine(t, "light", "remade", referring("remade"))
	was := r.awaitData(t, "remade")
	require.NoError(t, r.Delete(t.Context(), object(contract.KindSysctl, "remade")))
	r.condition(t, bootstrap.ConditionInputsUpToDate, "False", "Sysctl remade does not exist", "remade")
	require.NoError(t, r.Delete(t.Context(), was))
	r.condition(t, bootstrap.ConditionReady, "Unknown", "Sysctl remade does not exist", "remade")
	c := config("remade")
	require.NoError(t, r.Get(t.Context(), client.ObjectKeyFromObject(c), c))
	require.Empty(t, c.Status.DataSecretName)
	require.Zero(t, c.Status.Initialization)
	require.Nil(t, c.Status.Ready)
	r.sysctl(t, "remade")
	require.Equal(t, was.Data, r.awaitData(t, "remade").Data)
	r.condition(t, bootstrap.ConditionReady, "True", "", "remade")
}

// leaving: a Machine that is being deleted gets no data.
func (r *rig) leaving(t *testing.T) {
	r.machine(t, "light", "leaving", referring("leaving"))
	r.condition(t, bootstrap.ConditionReady, "Unknown", "Sysctl leaving does not exist", "leaving")
	r.deleting(t, "leaving")
	r.condition(t, bootstrap.ConditionReady, "Unknown", "Machine leaving is being deleted: it gets no data", "leaving")
	r.sysctl(t, "leaving")
	// What the correction of another config leads to comes later.
	r.machine(t, "light", "staying", referring("leaving"))
	r.awaitData(t, "staying")
	err := r.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "leaving" + dataSuffix}, &corev1.Secret{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// deleting deletes a Machine, which stays there as its provider makes it stay.
func (r *rig) deleting(t *testing.T, name string) {
	t.Helper()
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	require.NoError(t, r.Patch(t.Context(), machine, merge(`{"metadata":{"finalizers":["example.com/test"]}}`)))
	require.NoError(t, r.Delete(t.Context(), machine))
}
