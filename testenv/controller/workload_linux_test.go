package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/testenv/management"
)

// tokens waits until a cluster has so many bootstrap tokens, and returns them.
func (r *rig) tokens(t *testing.T, cluster string, want int) []corev1.Secret {
	t.Helper()
	return management.Tokens(t, r.Workload(t, "default", cluster), want)
}

// published publishes it in the management cluster, to which Clusters lead that a test makes itself.
func (r *rig) published(t testing.TB) {
	t.Helper()
	require.NoError(t, client.IgnoreAlreadyExists(r.Create(t.Context(), management.ClusterInfo())))
}
