package main

import (
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	reconcilers "github.com/machineadm/machineadm/host/controller"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// slim removes managed fields, and the copy of the object that kubectl apply leaves in an annotation: a Secret's has its values,
// of which the manager is to hold the metadata alone.
func slim(object any) (any, error) {
	o, ok := object.(metav1.Object)
	if !ok {
		return object, nil
	}
	if o.GetManagedFields() != nil { // an object that is in the cache is not written to
		o.SetManagedFields(nil)
	}
	if annotations := o.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		o.SetAnnotations(annotations)
	}
	return object, nil
}

// Of the following kinds there is an object for each machine. What the manager writes to them are differences between two copies
// from the cache, so that nothing that the cache leaves out is removed.

// slimMachine keeps what the reconciler reads of a Machine, which is never written.
func slimMachine(object any) (any, error) {
	m, ok := object.(*clusterv1.Machine)
	if !ok {
		return object, nil
	}
	slimmed := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: shared(m.Namespace), Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, DeletionTimestamp: m.DeletionTimestamp,
			Labels: only(m.Labels, clusterv1.MachineControlPlaneLabel),
		},
		Spec:   clusterv1.MachineSpec{ClusterName: shared(m.Spec.ClusterName), Version: shared(m.Spec.Version), Bootstrap: m.Spec.Bootstrap},
		Status: clusterv1.MachineStatus{NodeRef: m.Status.NodeRef},
	}
	if !m.Status.NodeRef.IsDefined() { // until then the reconciler looks for the node
		slimmed.Spec.ProviderID = m.Spec.ProviderID
		if c := conditions.Get(m, clusterv1.InfrastructureReadyCondition); c != nil {
			slimmed.Status.Conditions = []metav1.Condition{{Type: shared(c.Type), Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
		}
		for _, a := range m.Status.Addresses {
			if a.Type == clusterv1.MachineHostName || a.Type == clusterv1.MachineInternalDNS {
				slimmed.Status.Addresses = append(slimmed.Status.Addresses, a)
			}
		}
	}
	ref := &slimmed.Spec.Bootstrap.ConfigRef
	ref.APIGroup, ref.Kind = shared(ref.APIGroup), shared(ref.Kind)
	return slimmed, nil
}

// slimConfig keeps the whole spec and status, of which the words are the same in all configs.
func slimConfig(object any) (any, error) {
	c, ok := object.(*bootstrap.MachineBootstrapConfig)
	if !ok {
		return object, nil
	}
	slimMeta(&c.ObjectMeta)
	for i := range c.Status.Conditions {
		condition := &c.Status.Conditions[i]
		condition.Type, condition.Reason = shared(condition.Type), shared(condition.Reason)
		condition.Status = metav1.ConditionStatus(shared(string(condition.Status)))
	}
	return c, nil
}

// slimMetadata is for Secrets and ConfigMaps.
func slimMetadata(object any) (any, error) {
	if m, ok := object.(*metav1.PartialObjectMetadata); ok {
		slimMeta(&m.ObjectMeta)
	}
	return object, nil
}

func slimMeta(m *metav1.ObjectMeta) {
	m.Namespace, m.ManagedFields = shared(m.Namespace), nil
	m.Labels = only(m.Labels, clusterv1.WatchLabel, clusterv1.ClusterNameLabel, reconcilers.MoveLabel)
	m.Annotations = only(m.Annotations, clusterv1.PausedAnnotation, bootstrap.AnnotationInputs, bootstrap.AnnotationTokenEpoch, bootstrap.AnnotationStorage, reconcilers.DeleteForMove)
	for i := range m.OwnerReferences {
		ref := &m.OwnerReferences[i]
		ref.APIVersion, ref.Kind = shared(ref.APIVersion), shared(ref.Kind)
	}
}

// slimToken keeps what a bootstrap token is recognized and renewed by.
func slimToken(object any) (any, error) {
	s, ok := object.(*corev1.Secret)
	if !ok {
		return object, nil
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: shared(s.Namespace), Name: s.Name, ResourceVersion: s.ResourceVersion},
		Data:       only(s.Data, bootstrapapi.BootstrapTokenSecretKey, bootstrapapi.BootstrapTokenExpirationKey),
	}, nil
}

// only is a map with these keys alone, nil without any.
func only[V any](all map[string]V, keys ...string) map[string]V {
	var kept map[string]V
	for _, key := range keys {
		if value, ok := all[key]; ok {
			if kept == nil {
				kept = map[string]V{}
			}
			kept[key] = value
		}
	}
	return kept
}

// shared is the one copy of a text that many objects have.
func shared(text string) string { return unique.Make(text).Value() }
