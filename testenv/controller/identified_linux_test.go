package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// unidentified makes nodes that identified looks at when the manager has: a third of a token's life later.
func (r *rig) unidentified(t *testing.T) {
	for name, id := range map[string]string{"anonymous": "", "mistaken": "example:///0", "known": "example:///1"} {
		r.machine(t, "light", name, first())
		r.awaitData(t, name)
		machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		require.NoError(t, r.Patch(t.Context(), machine, merge(`{"spec":{"providerID":"example:///1"}}`)))
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}}
		if name == "mistaken" { // the node has the name that the infrastructure has for the machine
			node.Name = "ip-192-0-2-7"
			require.NoError(t, r.Status().Patch(t.Context(), machine, merge(`{"status":{"addresses":[{"type":"InternalDNS","address":"ip-192-0-2-7"}]}}`)))
		}
		require.NoError(t, r.Create(t.Context(), node))
	}
}

// identified: a node that is there without the provider ID of its Machine is in a condition, until the Machine has a node.
func (r *rig) identified(t *testing.T) {
	r.condition(t, bootstrap.ConditionNodeIdentified, metav1.ConditionFalse, `Node anonymous has the provider ID "", and its Machine "example:///1"`, "anonymous")
	r.condition(t, bootstrap.ConditionNodeIdentified, metav1.ConditionFalse, `Node ip-192-0-2-7 has the provider ID "example:///0"`, "mistaken")
	r.condition(t, bootstrap.ConditionReady, metav1.ConditionTrue, "", "anonymous", "mistaken", "known")

	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "anonymous"}}
	require.NoError(t, r.Status().Patch(t.Context(), machine, merge(`{"status":{"nodeRef":{"name":"anonymous"}}}`)))
	for _, name := range []string{"anonymous", "known"} {
		var config bootstrap.MachineBootstrapConfig
		require.Eventually(t, func() bool {
			require.NoError(t, r.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &config))
			return !conditions.Has(&config, bootstrap.ConditionNodeIdentified)
		}, soon, soon/300)
	}
}
