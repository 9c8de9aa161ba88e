package controller

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/management"
)

// events: each transition of a condition has one event.
func (r *rig) events(t *testing.T) {
	r.machine(t, "light", "events", joining())
	r.condition(t, bootstrap.ConditionReady, "True", "", "events")
	require.NoError(t, r.Patch(t.Context(), config("events"), merge(`{"metadata":{"annotations":{"cluster.x-k8s.io/paused":""}}}`)))
	r.condition(t, clusterv1.PausedCondition, "True", "", "events")
	require.NoError(t, r.Patch(t.Context(), config("events"), merge(`{"metadata":{"annotations":null}}`)))
	r.condition(t, clusterv1.PausedCondition, "False", "", "events")
	var all eventsv1.EventList
	management.Await(t, r, soon, &all, func() error {
		count := map[string]int{}
		for i := range all.Items {
			e := &all.Items[i]
			count[e.Reason]++
			require.Equal(t, "machineadm-manager", e.ReportingController)
		}
		if count["Available"] != 1 || count["Paused"] != 1 || count["NotPaused"] != 1 {
			return fmt.Errorf("the events are %v", count)
		}
		return nil
	}, client.InNamespace("default"), client.MatchingFields{"regarding.name": "events"})
}
