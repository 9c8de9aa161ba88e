package clusterctl

import (
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/management"
)

// movedThereAndBack: all that the data is made of arrives, and no manager makes anything again. The machine slow has no node: its
// token is the one that its data has.
func movedThereAndBack(t *testing.T, one, other *side) {
	t.Helper()
	objects, statuses := one.moved(t), one.statuses(t)
	tokens := management.Tokens(t, one.Workload(t, "default", "first"), 1)
	delete(objects, "Secret/left")

	one.move(t, other)
	other.running(t, "default", 4)
	arrived := func(s *side) {
		t.Helper()
		now := s.moved(t)
		delete(now, "Secret/left") // it stays in the first
		require.Equal(t, objects, now)
		found := management.Tokens(t, s.Workload(t, "default", "first"), 1)
		require.Equal(t, tokens[0].Name, found[0].Name)
		require.Equal(t, values(&tokens[0]), values(&found[0]))
	}
	arrived(other)
	require.Empty(t, other.writes(t, 0))
	rebuilt := other.statuses(t)
	slow := rebuilt["slow"]
	changed := meta.FindStatusCondition(slow.Conditions, bootstrap.ConditionInputsUpToDate)
	require.Contains(t, changed.Message, "Secret left does not exist")
	delete(rebuilt, "slow")
	back := len(one.Audit(t))

	other.move(t, one)
	one.running(t, "default", 4)
	arrived(one)
	require.Empty(t, one.writes(t, back))
	require.Equal(t, statuses, one.statuses(t))
	delete(statuses, "slow")
	require.Equal(t, statuses, rebuilt)
}

// move moves the namespace default to another management cluster, and the infrastructure with it.
func (s *side) move(t *testing.T, to *side) {
	t.Helper()
	// clusterctl moves no Machine without a node.
	var slow clusterv1.Machine
	require.NoError(t, s.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "slow"}, &slow))
	read := client.MergeFrom(slow.DeepCopy()) // Cluster API may write it in between
	slow.Status.NodeRef = clusterv1.MachineNodeReference{Name: "pretended"}
	require.NoError(t, s.Status().Patch(t.Context(), &slow, read))
	management.Tokens(t, s.Workload(t, "default", "first"), 0)
	mark := len(s.Audit(t))
	s.ctl.Run(t, s.Kubeconfig, "move", "--to-kubeconfig="+to.Kubeconfig, "--namespace=default")
	require.Empty(t, s.writes(t, mark), "a paused manager writes nothing")
	s.infrastructure.Stop(t)
	infrastructure := client.MatchingLabels{"cluster.x-k8s.io/provider": "infrastructure-docker"}
	for _, webhooks := range []client.Object{
		&admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{},
	} {
		require.NoError(t, s.DeleteAllOf(t.Context(), webhooks, infrastructure), "its process is gone")
	}
	to.infrastructure = to.InMemory(to.test)
}
