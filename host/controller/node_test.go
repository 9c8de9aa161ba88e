package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

func TestFactsPort(t *testing.T) {
	t.Parallel()
	w := &work{owner: &owner{controlPlane: true}, cluster: &clusterv1.Cluster{
		Spec: clusterv1.ClusterSpec{ClusterNetwork: clusterv1.ClusterNetwork{APIServerPort: 8443}},
	}}
	_, err := w.facts(t.Context(), &contract.KubernetesNodeSpec{})
	require.NotNil(t, asStop(err))
	require.Equal(t, "Contradiction: Cluster.spec.clusterNetwork.apiServerPort is 8443, but the API server of the KubernetesNode listens on 6443: "+
		"set spec.node.advertisePort, or remove the field", err.Error())
}

func TestEndpoint(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"10.0.0.1": "10.0.0.1:6443", "api.example.com": "api.example.com:6443", "API.Example.com": "api.example.com:6443",
		"fd00::1": "[fd00::1]:6443", "[fd00::1]": "[fd00::1]:6443", "FD00::1": "[fd00::1]:6443",
		"[[fd00::1]]": "", "https://api.example.com": "", "api.example.com:6443": "", "api_1.example.com": "", "fe80::1%eth0": "", "10.0.0.256": "", "a b": "",
	} {
		got, err := endpoint(&clusterv1.APIEndpoint{Host: host, Port: 6443})
		require.Equal(t, want, got, host)
		require.Equal(t, want == "", err != nil, host)
		if err != nil {
			require.Equal(t, bootstrap.ReasonContradiction, asStop(err).reason)
			require.ErrorContains(t, err, "Cluster.spec.controlPlaneEndpoint is ")
		}
	}
}
