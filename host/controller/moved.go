package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// MoveLabel makes clusterctl move take an object along that belongs to nothing.
const MoveLabel = "clusterctl.cluster.x-k8s.io/move"

// DeleteForMove is the annotation of an object that clusterctl move deletes because the other management cluster has it.
const DeleteForMove = "clusterctl.cluster.x-k8s.io/delete-for-move"

// moves says whether clusterctl move takes an object along: with its owner, or by its label.
func moves(object metav1.Object) bool {
	_, labelled := object.GetLabels()[MoveLabel]
	return labelled || len(object.GetOwnerReferences()) > 0
}

// warn records an event for each Secret and ConfigMap that a move leaves behind: the other management cluster has the data
// then, and reports its input as one that does not exist.
func warn(events *recorder, config *bootstrap.MachineBootstrapConfig, left map[input]struct{}) {
	for of := range left {
		events.record(config, corev1.EventTypeWarning, of.Kind+"NotMoved", fmt.Sprintf(
			"clusterctl move does not take %s %s along: give it an owner in the cluster, or the label %s", of.Kind, of.Name, MoveLabel))
	}
}
