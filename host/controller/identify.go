package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// identify says in a condition when the node of a machine is there, but not with the provider ID by which Cluster API looks for it: then the
// Machine waits forever, and no other object says why. Most machines have joined before the first look, after a third of the token's life.
func (w *work) identify(ctx context.Context, data *metav1.PartialObjectMetadata) ctrl.Result {
	machine, ok := w.owner.object.(*clusterv1.Machine)
	needed := conditions.GetReason(w.config, bootstrap.ConditionCertificatesAvailable) != bootstrap.ReasonNotNeeded
	if !ok || !needed || w.owner.joined {
		conditions.Delete(w.config, bootstrap.ConditionNodeIdentified)
		return ctrl.Result{}
	}
	age := w.r.Now().Sub(data.CreationTimestamp.Time)
	switch first := w.r.TokenTTL / 3; {
	case age < first:
		return ctrl.Result{RequeueAfter: first - age}
	case age > tokenLife:
		return ctrl.Result{}
	}
	next := ctrl.Result{RequeueAfter: tokenLook}
	c, err := w.live(ctx)
	if err != nil {
		return next // that the cluster cannot be reached is said elsewhere
	}
	for _, name := range nodeNames(machine) {
		var node corev1.Node
		if err := c.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
			continue // the node may have another name
		}
		if has, want := node.Spec.ProviderID, machine.Spec.ProviderID; has != want && want != "" {
			mark(w.config, bootstrap.ConditionNodeIdentified, metav1.ConditionFalse, bootstrap.ReasonProviderIDDiffers, fmt.Sprintf(
				"Node %s has the provider ID %q, and its Machine %q: let a cloud controller manager write it, or set node.providerIDFrom of KubernetesNode, for new machines",
				name, has, want))
			return next
		}
	}
	conditions.Delete(w.config, bootstrap.ConditionNodeIdentified)
	return next
}

// nodeNames are the names that the node of a machine probably has.
func nodeNames(machine *clusterv1.Machine) []string {
	names := []string{machine.Name}
	for _, a := range machine.Status.Addresses {
		if (a.Type == clusterv1.MachineHostName || a.Type == clusterv1.MachineInternalDNS) && a.Address != machine.Name {
			names = append(names, a.Address)
		}
	}
	return names
}
