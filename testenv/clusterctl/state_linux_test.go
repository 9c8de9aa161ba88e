package clusterctl

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// all are the objects of our kinds and the Secrets of the namespace default, by kind and name.
func (s *side) all(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	var definitions apiextensionsv1.CustomResourceDefinitionList
	require.NoError(t, s.List(t.Context(), &definitions, client.MatchingLabels{"cluster.x-k8s.io/provider": provider}))
	require.Len(t, definitions.Items, 14)
	kinds := []metav1.GroupVersionKind{{Version: "v1", Kind: "Secret"}}
	for i := range definitions.Items {
		spec := &definitions.Items[i].Spec
		kinds = append(kinds, metav1.GroupVersionKind{Group: spec.Group, Version: spec.Versions[0].Name, Kind: spec.Names.Kind})
	}
	found := map[string]*unstructured.Unstructured{}
	for _, kind := range kinds {
		var list unstructured.UnstructuredList
		list.SetAPIVersion(metav1.GroupVersion{Group: kind.Group, Version: kind.Version}.String())
		list.SetKind(kind.Kind + "List")
		require.NoError(t, s.List(t.Context(), &list, client.InNamespace("default")))
		for i := range list.Items {
			found[kind.Kind+"/"+list.Items[i].GetName()] = &list.Items[i]
		}
	}
	return found
}

// kept is what a move must not change of an object.
type kept struct {
	Labels, Annotations map[string]string
	Owners              []string
	Spec, Data          any
}

// moved is all that is kept, with the Secrets' values.
func (s *side) moved(t *testing.T) map[string]kept {
	t.Helper()
	state := map[string]kept{}
	for name, o := range s.all(t) {
		k := kept{Labels: o.GetLabels(), Annotations: o.GetAnnotations(), Spec: o.Object["spec"], Data: o.Object["data"]}
		for _, owner := range o.GetOwnerReferences() {
			k.Owners = append(k.Owners, owner.Kind+"/"+owner.Name)
		}
		slices.Sort(k.Owners)
		state[name] = k
	}
	return state
}

// statuses are the statuses of the configs, without times and in a fixed order.
func (s *side) statuses(t *testing.T) map[string]bootstrap.MachineBootstrapConfigStatus {
	t.Helper()
	made := map[string]bootstrap.MachineBootstrapConfigStatus{}
	for name, c := range s.configs(t, hasData) {
		status := *c.Status.DeepCopy()
		for i := range status.Conditions {
			status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
		slices.SortFunc(status.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
		made[name] = status
	}
	return made
}

func hasData(c *bootstrap.MachineBootstrapConfig) bool {
	for i := range c.Status.Conditions {
		if c.Status.Conditions[i].Type == bootstrap.ConditionReady {
			return c.Status.DataSecretName != "" && c.Status.Conditions[i].Status == metav1.ConditionTrue
		}
	}
	return false
}

// reaches says whether an object belongs to a Cluster by its owners.
func (s *side) reaches(t *testing.T, o *unstructured.Unstructured) bool {
	t.Helper()
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == "Cluster" {
			return true
		}
		var owner unstructured.Unstructured
		owner.SetAPIVersion(ref.APIVersion)
		owner.SetKind(ref.Kind)
		require.NoError(t, s.Get(t.Context(), client.ObjectKey{Namespace: o.GetNamespace(), Name: ref.Name}, &owner))
		require.Equal(t, owner.GetUID(), ref.UID)
		if s.reaches(t, &owner) {
			return true
		}
	}
	return false
}

// writes are the requests of our manager that change something, since as many requests as there were, except the conditions of
// configs and events.
func (s *side) writes(t *testing.T, since int) []string {
	t.Helper()
	var found []string
	for _, r := range s.Audit(t)[since:] {
		o := r.Object
		if r.User.Name != "system:serviceaccount:"+namespace+":machineadm-manager" || slices.Contains([]string{"get", "list", "watch"}, r.Verb) ||
			o.Resource == "events" || o.Resource == "machinebootstrapconfigs" && o.Subresource == "status" {
			continue
		}
		found = append(found, r.Verb+" "+o.Resource+"/"+o.Name)
	}
	return found
}

// values are the bootstrap token's of a Secret, without the time at which it ends.
func values(token *corev1.Secret) map[string][]byte {
	data := token.DeepCopy().Data
	delete(data, "expiration")
	return data
}
