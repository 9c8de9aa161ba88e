package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// TestOfMachine: an event of a Machine of the control plane, which may be the last, wakes those that wait for the init lock.
func TestOfMachine(t *testing.T) {
	t.Parallel()
	request := func(name string) reconcile.Request {
		return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: name}}
	}
	r := &Reconciler{readers: newReaders()}
	r.readers.add(request("waits").NamespacedName, input{schema.GroupKind{Kind: "ConfigMap"}, client.ObjectKey{Namespace: "ns", Name: "first-lock"}})
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: clusterv1.MachineSpec{ClusterName: "first"}}
	machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: bootstrap.Group, Kind: bootstrap.KindMachineBootstrapConfig, Name: "config",
	}
	require.Equal(t, []reconcile.Request{request("config")}, r.ofMachine(t.Context(), machine))
	machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	require.Equal(t, []reconcile.Request{request("config"), request("waits")}, r.ofMachine(t.Context(), machine))
	machine.Spec.ClusterName = "other"
	require.Equal(t, []reconcile.Request{request("config")}, r.ofMachine(t.Context(), machine))
}
