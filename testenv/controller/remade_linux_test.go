package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
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

// adopted: a backup restores data without its owner, and configs without their status.
func (r *rig) adopted(t *testing.T) {
	lose := func(name string, status bool) {
		t.Helper()
		if status {
			require.NoError(t, r.Status().Patch(t.Context(), config(name), merge(`{"status":null}`)))
		}
		require.NoError(t, r.Patch(t.Context(), r.secret(t, "default", name+dataSuffix), merge(`{"metadata":{"ownerReferences":null}}`)))
	}
	for _, name := range []string{"adopted", "adopted-kept", "adopted-joining", "adopted-used"} {
		r.sysctl(t, name)
		r.machine(t, "light", name, referring(name))
	}
	r.machine(t, "light", "adopted-token", joining())
	for name, status := range map[string]bool{"adopted": true, "adopted-kept": false, "adopted-token": true} {
		was := r.awaitData(t, name)
		r.condition(t, bootstrap.ConditionReady, "True", "", name)
		lose(name, status)
		now := r.awaitData(t, name)
		require.Equal(t, was.UID, now.UID)
		require.Equal(t, was.Data, now.Data)
		require.Equal(t, metav1.GetControllerOf(was), metav1.GetControllerOf(now), "the owner is back")
		r.condition(t, bootstrap.ConditionReady, "True", "", name)
	}
	// An input has changed since the backup: the data belongs to the Machine if the Machine says so.
	used := r.awaitData(t, "adopted-used")
	require.NoError(t, r.Patch(t.Context(), &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "adopted-used"}},
		merge(`{"spec":{"bootstrap":{"dataSecretName":"adopted-used`+dataSuffix+`"}}}`)))
	require.NoError(t, r.Patch(t.Context(), object(contract.KindSysctl, "adopted-used"), merge(`{"spec":{"parameters":{"a.b":"2"}}}`)))
	r.condition(t, bootstrap.ConditionInputsUpToDate, "False", "adopted-used", "adopted-used")
	lose("adopted-used", true)
	require.Equal(t, used.UID, r.awaitData(t, "adopted-used").UID)
	r.condition(t, bootstrap.ConditionInputsUpToDate, "False", "adopted-used", "adopted-used")
	// What nobody owns, and was made from something else, is not taken.
	r.awaitData(t, "adopted-joining")
	require.NoError(t, r.Patch(t.Context(), object(contract.KindSysctl, "adopted-joining"), merge(`{"spec":{"parameters":{"a.b":"2"}}}`)))
	r.condition(t, bootstrap.ConditionInputsUpToDate, "False", "adopted-joining", "adopted-joining")
	lose("adopted-joining", true)
	r.condition(t, bootstrap.ConditionReady, "False", "Secret adopted-joining"+dataSuffix+" belongs to something else", "adopted-joining")
	require.NoError(t, r.Delete(t.Context(), r.secret(t, "default", "adopted-joining"+dataSuffix)))
	r.awaitData(t, "adopted-joining")
}

// namedAgain: a config with the name of another one never gets the data of that one, which the garbage collector removes.
func (r *rig) namedAgain(t *testing.T) {
	r.sysctl(t, "again-a")
	r.sysctl(t, "again-b")
	r.machine(t, "light", "again", referring("again-a"))
	was := r.awaitData(t, "again")
	require.NoError(t, r.Delete(t.Context(), config("again")))
	require.NoError(t, r.Delete(t.Context(), &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "again"}}))
	r.machine(t, "light", "again", referring("again-b"))
	require.Eventually(t, func() bool {
		c, now := config("again"), corev1.Secret{}
		require.NoError(t, r.Get(t.Context(), client.ObjectKeyFromObject(c), c))
		if c.Status.DataSecretName == "" {
			return false
		}
		require.NoError(t, r.Get(t.Context(), client.ObjectKeyFromObject(was), &now)) // after the config
		return assert.NotEqual(t, was.UID, now.UID, "the data of the other config")
	}, soon, soon/600)
	require.NotEqual(t, was.Annotations[bootstrap.AnnotationInputs], r.awaitData(t, "again").Annotations[bootstrap.AnnotationInputs])
	r.condition(t, bootstrap.ConditionReady, "True", "", "again")
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
