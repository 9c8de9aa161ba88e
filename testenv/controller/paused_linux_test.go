package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// paused: nothing but the condition Paused is written to a config that is paused, or whose cluster is, before it has an owner.
func (r *rig) paused(t *testing.T) {
	r.cluster(t, "halted")
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "halted"}}
	require.NoError(t, r.Patch(t.Context(), cluster, merge(`{"spec":{"paused":true}}`)))
	annotated, labelled := config("annotated"), config("labelled")
	annotated.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	labelled.Labels = map[string]string{clusterv1.ClusterNameLabel: "halted"}
	require.NoError(t, r.Create(t.Context(), annotated))
	require.NoError(t, r.Create(t.Context(), labelled))
	r.condition(t, clusterv1.PausedCondition, "True", "annotation", "annotated")
	r.condition(t, clusterv1.PausedCondition, "True", "Cluster spec.paused", "labelled")
	// A config that is not paused is reconciled after those that were there before.
	require.NoError(t, r.Create(t.Context(), config("unpaused")))
	r.condition(t, bootstrap.ConditionReady, "Unknown", "no Machine or MachinePool", "unpaused")
	for _, c := range []*bootstrap.MachineBootstrapConfig{annotated, labelled} {
		require.NoError(t, r.Get(t.Context(), client.ObjectKeyFromObject(c), c))
		require.Len(t, c.Status.Conditions, 1)
	}
	require.NoError(t, r.Patch(t.Context(), cluster, merge(`{"spec":{"paused":false}}`)))
	require.NoError(t, r.Patch(t.Context(), annotated, merge(`{"metadata":{"annotations":null}}`)))
	r.condition(t, bootstrap.ConditionReady, "Unknown", "no Machine or MachinePool", "annotated", "labelled")
}
