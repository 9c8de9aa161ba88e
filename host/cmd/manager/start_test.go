package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	reconcilers "github.com/machineadm/machineadm/host/controller"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// TestSlim: the cache holds no copy of an object in its metadata. Of kinds with an object for each machine it holds the labels and
// annotations that are read, of others all.
func TestSlim(t *testing.T) {
	t.Parallel()
	ours := map[string]string{bootstrap.AnnotationInputs: "1", bootstrap.AnnotationTokenEpoch: "2", clusterv1.PausedAnnotation: ""}
	read := map[string]string{reconcilers.MoveLabel: "", clusterv1.WatchLabel: "blue", clusterv1.ClusterNameLabel: "c"}
	for name, c := range map[string]struct {
		object              client.Object
		transform           func(any) (any, error)
		labels, annotations map[string]string
	}{
		"any":     {&unstructured.Unstructured{Object: map[string]any{}}, slim, with(read, "label"), with(ours, "annotation")},
		"secret":  {&metav1.PartialObjectMetadata{}, slimMetadata, read, ours},
		"config":  {&bootstrap.MachineBootstrapConfig{}, slimConfig, read, ours},
		"machine": {&clusterv1.Machine{}, slimMachine, nil, nil},
	} {
		c.object.SetNamespace("namespace")
		c.object.SetName("name")
		c.object.SetResourceVersion("7")
		c.object.SetLabels(with(read, "label"))
		c.object.SetAnnotations(with(with(ours, "annotation"), corev1.LastAppliedConfigAnnotation))
		c.object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
		kept, err := c.transform(c.object)
		require.NoError(t, err, name)
		slimmed, ok := kept.(client.Object)
		require.True(t, ok, name)
		assert.IsType(t, c.object, kept, name)
		assert.Equal(t, c.labels, slimmed.GetLabels(), name)
		assert.Equal(t, c.annotations, slimmed.GetAnnotations(), name)
		assert.Empty(t, slimmed.GetManagedFields(), name)
		assert.Equal(t, "namespace/name 7", client.ObjectKeyFromObject(slimmed).String()+" "+slimmed.GetResourceVersion(), name)
	}
}

// with is a copy of a map with another key.
func with(all map[string]string, key string) map[string]string {
	more := map[string]string{key: "c4n4ry"}
	for k, v := range all {
		more[k] = v
	}
	return more
}

// TestSlimMachine: what the reconciler reads of a Machine.
func TestSlimMachine(t *testing.T) {
	t.Parallel()
	name, now := "data", metav1.Now()
	want := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: "m", DeletionTimestamp: &now, Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}},
		Spec: clusterv1.MachineSpec{ClusterName: "c", Version: "v1.36.3", Bootstrap: clusterv1.Bootstrap{
			DataSecretName: &name, ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: "g", Kind: "k", Name: "n"},
		}},
		Status: clusterv1.MachineStatus{NodeRef: clusterv1.MachineNodeReference{Name: "node"}},
	}
	full := want.DeepCopy()
	full.Finalizers, full.Spec.ProviderID, full.Status.Phase = []string{"f"}, "p", "Running"
	full.OwnerReferences = []metav1.OwnerReference{{Name: "set"}}
	full.Status.Addresses = []clusterv1.MachineAddress{{Type: clusterv1.MachineInternalIP, Address: "192.0.2.1"}, {Type: clusterv1.MachineInternalDNS, Address: "a"}}
	got, err := slimMachine(full)
	require.NoError(t, err)
	require.Equal(t, want, got)
	// Without a node it is looked for, by its names.
	full.Status.NodeRef, want.Status.NodeRef = clusterv1.MachineNodeReference{}, clusterv1.MachineNodeReference{}
	want.Spec.ProviderID, want.Status.Addresses = "p", full.Status.Addresses[1:]
	got, err = slimMachine(full)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// TestSlimToken: a token is recognized by its secret, and renewed by a difference to what the cache has.
func TestSlimToken(t *testing.T) {
	t.Parallel()
	got, err := slimToken(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: map[string]string{"a": "b"}}, Type: "t",
		Data: map[string][]byte{"token-id": []byte("i"), "token-secret": []byte("s"), "expiration": []byte("e")},
	})
	require.NoError(t, err)
	require.Equal(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"token-secret": []byte("s"), "expiration": []byte("e")},
	}, got)
}
