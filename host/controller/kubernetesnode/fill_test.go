package kubernetesnode_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/kubernetesnode"
)

func facts(role string) *kubernetesnode.Facts {
	return &kubernetesnode.Facts{
		Role: role, Version: "v1.36.3", Cluster: "prod", Endpoint: "10.0.0.1:6443", DNSDomain: "cluster.example",
		PodSubnets: []string{"10.1.0.0/16"}, ServiceSubnets: []string{"10.2.0.0/16"},
		Certificates: &contract.ClusterCertificates{CA: &contract.KeyPair{Certificate: "pem"}},
		Token:        "abcdef.0123456789abcdef", CACertHashes: []string{"sha256:00"},
		Uninitialized: contract.Taint{Key: "node.cluster.x-k8s.io/uninitialized", Effect: "NoSchedule"},
	}
}

func TestFillWorker(t *testing.T) {
	t.Parallel()
	spec := contract.KubernetesNodeSpec{Node: contract.KubernetesNodeRegistration{Taints: []contract.Taint{{Key: "gpu", Effect: "NoSchedule"}}}}
	mine := spec.Node.Taints
	require.Empty(t, kubernetesnode.Fill(&spec, facts(contract.Worker)))
	require.Equal(t, "worker", spec.Role)
	require.Equal(t, "v1.36.3", spec.KubernetesVersion)
	require.Equal(t, contract.KubernetesCluster{Name: "prod", Endpoint: "10.0.0.1:6443"}, spec.Cluster, "the rest is for the first control plane")
	require.Equal(t, "abcdef.0123456789abcdef", string(spec.Discovery.Token.Reveal()))
	require.Equal(t, []string{"sha256:00"}, spec.Discovery.CACertHashes)
	require.Nil(t, spec.Certificates, "a worker gets no key of an authority")
	require.Equal(t, []string{"gpu", "node.cluster.x-k8s.io/uninitialized"}, []string{spec.Node.Taints[0].Key, spec.Node.Taints[1].Key})
	require.Len(t, mine, 1, "the object that the document came from keeps its taints")
}

func TestFillControlPlane(t *testing.T) {
	t.Parallel()
	var first, further contract.KubernetesNodeSpec
	require.Empty(t, kubernetesnode.Fill(&first, facts(contract.ControlPlaneInit)))
	require.Equal(t, contract.KubernetesCluster{
		Name: "prod", Endpoint: "10.0.0.1:6443", DNSDomain: "cluster.example",
		PodSubnets: []string{"10.1.0.0/16"}, ServiceSubnets: []string{"10.2.0.0/16"},
	}, first.Cluster)
	require.Nil(t, first.Discovery, "there is nothing to join")
	require.NotNil(t, first.Certificates)
	require.Empty(t, first.Node.Taints)

	require.Empty(t, kubernetesnode.Fill(&further, facts(contract.ControlPlaneJoin)))
	require.Equal(t, contract.KubernetesCluster{Name: "prod", Endpoint: "10.0.0.1:6443"}, further.Cluster)
	require.NotNil(t, further.Certificates)
	require.NotNil(t, further.Discovery.Token)
}

func TestFillKeepsDiscovery(t *testing.T) {
	t.Parallel()
	own := contract.NewSecret([]byte("kubeconfig"))
	spec := contract.KubernetesNodeSpec{Discovery: &contract.Discovery{Kubeconfig: &own}}
	require.True(t, kubernetesnode.OwnDiscovery(&spec))
	require.Empty(t, kubernetesnode.Fill(&spec, facts(contract.Worker)))
	require.Nil(t, spec.Discovery.Token)
	require.Empty(t, spec.Discovery.CACertHashes, "a kubeconfig excludes the other fields")

	token := contract.NewSecret([]byte("fedcba.0123456789abcdef"))
	spec = contract.KubernetesNodeSpec{Discovery: &contract.Discovery{Token: &token}}
	require.Empty(t, kubernetesnode.Fill(&spec, facts(contract.Worker)))
	require.Equal(t, "fedcba.0123456789abcdef", string(spec.Discovery.Token.Reveal()))
	require.Equal(t, []string{"sha256:00"}, spec.Discovery.CACertHashes, "a token is no use without them")
}

func TestFillContradictions(t *testing.T) {
	t.Parallel()
	for field, spec := range map[string]contract.KubernetesNodeSpec{
		"spec.role":              {Role: "controlPlaneInit"},
		"spec.kubernetesVersion": {KubernetesVersion: "v1.35.0"},
		"spec.cluster.name":      {Cluster: contract.KubernetesCluster{Name: "other"}},
		"spec.cluster.endpoint":  {Cluster: contract.KubernetesCluster{Endpoint: "10.9.9.9:6443"}},
	} {
		before := spec
		found := kubernetesnode.Fill(&spec, facts(contract.Worker))
		require.Len(t, found, 1, field)
		require.Equal(t, field, found[0].Field)
		require.Contains(t, found[0].Message, "remove the field")
		require.Equal(t, before, spec, "nothing changes")
	}
	spec := contract.KubernetesNodeSpec{Cluster: contract.KubernetesCluster{PodSubnets: []string{"10.7.0.0/16"}}}
	require.Equal(t, "spec.cluster.podSubnets", kubernetesnode.Fill(&spec, facts(contract.ControlPlaneInit))[0].Field)

	without := facts(contract.Worker)
	without.Version = ""
	spec = contract.KubernetesNodeSpec{}
	require.Equal(t, "spec.kubernetesVersion", kubernetesnode.Fill(&spec, without)[0].Field)

	spec = contract.KubernetesNodeSpec{KubernetesVersion: "v1.36.3"}
	bare := facts(contract.Worker)
	bare.Version = "1.36.3"
	require.Empty(t, kubernetesnode.Fill(&spec, bare), "a missing v is no difference")
}

// TestFillShared: control planes and workers have one document; what is for other roles is left out.
func TestFillShared(t *testing.T) {
	t.Parallel()
	document := func() contract.KubernetesNodeSpec {
		key := contract.NewSecret([]byte("key"))
		return contract.KubernetesNodeSpec{
			CertificateKey: &key, APIServer: &contract.ControlPlaneComponent{Args: []contract.Argument{{Name: "audit-log-path"}}},
			Cluster: contract.KubernetesCluster{CertificateSANs: []string{"api.example.com"}, PodSubnets: []string{"10.9.0.0/16"}},
		}
	}
	for _, role := range []string{contract.ControlPlaneInit, contract.ControlPlaneJoin, contract.Worker} {
		spec, f := document(), facts(role)
		f.PodSubnets = nil
		require.Empty(t, kubernetesnode.Fill(&spec, f), role)
		require.Empty(t, spec.Misplaced(), role)
		require.Equal(t, role == contract.ControlPlaneInit, spec.APIServer != nil, role)
		require.Equal(t, role == contract.ControlPlaneInit, spec.CertificateKey != nil, "a further control plane has the certificates, and would download them too")
		require.Equal(t, role != contract.Worker, spec.Certificates != nil, role)
	}
	spec := document()
	spec.Role = contract.ControlPlaneJoin
	found := kubernetesnode.Fill(&spec, facts(contract.ControlPlaneJoin))
	require.Len(t, found, 3, "a document that says its role is for no other one")
	require.Equal(t, kubernetesnode.Contradiction{
		Field: "spec.apiServer.args", Message: "is for the role controlPlaneInit only: remove it, or remove spec.role",
	}, found[2])
}

func TestFillLabels(t *testing.T) {
	t.Parallel()
	spec := contract.KubernetesNodeSpec{Node: contract.KubernetesNodeRegistration{Labels: map[string]string{
		"node-role.kubernetes.io/batch": "", "example.com/a": "b", "node.kubernetes.io/pool": "c",
	}}}
	require.Equal(t, []kubernetesnode.Contradiction{{
		Field: "spec.node.labels", Message: "has node-role.kubernetes.io/batch, which a kubelet must not set on its node: remove it, and label the Node",
	}}, kubernetesnode.Fill(&spec, facts(contract.Worker)))
}
