package v1alpha1

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shared is a document for control planes and workers, with each kind of field that is for some roles.
func shared(role string) KubernetesNodeSpec {
	token, key := NewSecret([]byte("t")), NewSecret([]byte("k"))
	return KubernetesNodeSpec{
		Role: role, Cluster: KubernetesCluster{Name: "c", DNSDomain: "d"}, Node: KubernetesNodeRegistration{ImagePullPolicy: "Never"},
		Discovery: &Discovery{Token: &token, CACertHashes: []string{"h"}}, CertificateKey: &key,
		Etcd:      &Etcd{External: &ExternalEtcd{Endpoints: []string{"e"}}},
		APIServer: &ControlPlaneComponent{Args: []Argument{{Name: "a"}}}, Scheduler: &ControlPlaneComponent{Args: []Argument{{Name: "a"}}, Image: "i"},
		Patches: []ComponentPatch{{Target: "etcd"}, {Target: "kubeletconfiguration"}, {Target: "corednsdeployment"}, {Target: "unknown"}},
	}
}

func TestMisplaced(t *testing.T) {
	t.Parallel()
	planes, first := []string{ControlPlaneInit, ControlPlaneJoin}, []string{ControlPlaneInit}
	for role, want := range map[string][]RoleField{
		ControlPlaneInit: {{"spec.discovery.caCertHashes", []string{ControlPlaneJoin, Worker}}},
		ControlPlaneJoin: {
			{"spec.cluster.dnsDomain", first}, {"spec.apiServer.args", first}, {"spec.scheduler.args", first}, {"spec.patches[2].target", first},
		},
		Worker: {
			{"spec.cluster.dnsDomain", first},
			{"spec.node.imagePullPolicy", planes},
			{"spec.certificateKey", planes},
			{"spec.etcd.external", planes},
			{"spec.apiServer.args", first},
			{"spec.scheduler.args", first},
			{"spec.scheduler.image", planes},
			{"spec.patches[0].target", planes},
			{"spec.patches[2].target", first},
		},
	} {
		s := shared(role)
		assert.Equal(t, want, s.Misplaced(), role)
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	for _, role := range []string{ControlPlaneInit, ControlPlaneJoin, Worker} {
		s := shared(role)
		patches := s.Patches
		s.Fit()
		require.Empty(t, s.Misplaced(), role)
		assert.Len(t, patches, 4, "of the object that the document came from")
		once := s
		s.Fit()
		assert.Equal(t, once, s, role)
	}
	s := shared(Worker)
	s.Fit()
	assert.Nil(t, s.APIServer, "nothing is left of it")
	assert.Nil(t, s.Etcd)
	assert.Equal(t, []ComponentPatch{{Target: "kubeletconfiguration"}, {Target: "unknown"}}, s.Patches, "who does not know a target leaves it to the provider")
	assert.Equal(t, "t", string(s.Discovery.Token.Reveal()))
	s = shared(ControlPlaneJoin)
	s.Fit()
	assert.Equal(t, &ControlPlaneComponent{Image: "i"}, s.Scheduler)
	assert.Equal(t, []string{"e"}, s.Etcd.External.Endpoints)
}
