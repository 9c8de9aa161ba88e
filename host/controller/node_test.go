package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestFactsPort(t *testing.T) {
	t.Parallel()
	w := &work{owner: &owner{controlPlane: true}, cluster: &clusterv1.Cluster{
		Spec: clusterv1.ClusterSpec{ClusterNetwork: clusterv1.ClusterNetwork{APIServerPort: 8443}},
	}}
	_, err := w.facts(t.Context())
	require.NotNil(t, asStop(err))
	require.Equal(t, "Contradiction: Cluster.spec.clusterNetwork.apiServerPort is 8443, but the API server of a KubernetesNode listens on 6443: "+
		"remove the field", err.Error())
}
