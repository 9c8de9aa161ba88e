package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestSlim: the cache holds no copy of an object in its metadata, and all else that the metadata has.
func TestSlim(t *testing.T) {
	t.Parallel()
	transform := (&options{}).cache()
	for name, object := range map[string]metav1.Object{
		"metadata": &metav1.PartialObjectMetadata{}, "unstructured": &unstructured.Unstructured{Object: map[string]any{}}, "machine": &clusterv1.Machine{},
	} {
		object.SetName("name")
		object.SetLabels(map[string]string{"label": "1"})
		object.SetAnnotations(map[string]string{"ours": "2", corev1.LastAppliedConfigAnnotation: `{"data":{"password":"c4n4ry"}}`})
		object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
		f := transform.DefaultTransform
		if name == "machine" {
			f = slimMachine
		}
		kept, err := f(object)
		require.NoError(t, err, name)
		require.Same(t, object, kept, name)
		require.Equal(t, map[string]string{"ours": "2"}, object.GetAnnotations(), name)
		require.Equal(t, map[string]string{"label": "1"}, object.GetLabels(), name)
		require.Empty(t, object.GetManagedFields(), name)
	}
}
