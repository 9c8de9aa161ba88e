package settings

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/sdk"
)

// TestPathsOfKubernetes: a document may write where cloud providers and the documentation of Kubernetes have files, and nothing that
// kubeadm, the kubelet, etcd or the provider writes.
func TestPathsOfKubernetes(t *testing.T) {
	t.Parallel()
	const dir = "cluster: {certificatesDir: /etc/kubernetes/ssl}\netcd: {local: {dataDir: /srv/etcd}}\n"
	refused := func(path string) bool {
		t.Helper()
		_, violations, err := spec(t, initSpec+dir+"files: [{path: "+path+", content: a}]")
		require.NoError(t, err)
		for _, v := range violations {
			assert.Equal(t, "is a path of the provider, of the host or of the kernel", v.Message, path)
			assert.Contains(t, v.Hint, "spec.staticPods")
		}
		return len(violations) > 0
	}
	for _, path := range []string{
		"/etc/kubernetes/cloud.conf", "/etc/kubernetes/vsphere.conf", "/etc/kubernetes/cloud-config", "/etc/kubernetes/azure.json", "/etc/kubernetes/gce.conf",
		"/etc/kubernetes/openstack/cloud.conf", "/etc/kubernetes/acr-credential-provider/config.conf", "/etc/kubernetes/encryption-config.yaml",
		"/etc/kubernetes/scheduler.conf.d/a", "/etc/kubernetes/patches/etcd.yaml", "/etc/kubernetes/kubelet/ecr-credential-provider/config.json",
		"/var/lib/kubelet/config.json", "/var/lib/kubelet/seccomp/profiles/audit.json", "/var/lib/kubelet/credential-provider-config.yaml",
		"/etc/kubernetes/pki/oidc-ca.crt", "/etc/kubernetes/ssl/oidc-ca.crt", "/etc/kubernetes/pki/apiserver-webhook.crt", "/etc/kubernetes/kubelet.conf.d/10-a.conf",
	} {
		assert.False(t, refused(path), path)
	}
	for _, path := range []string{
		"/etc/kubernetes", "/etc/kubernetes/kubelet.conf", "/etc/kubernetes/super-admin.conf", "/etc/kubernetes/controller-manager.conf", "/etc/kubernetes/manifests",
		"/etc/kubernetes/manifests/kube-vip.yaml", "/etc/kubernetes/tmp/a", "/etc/kubernetes/pki", "/etc/kubernetes/pki/ca.crt", "/etc/kubernetes/pki/etcd",
		"/etc/kubernetes/ssl", "/etc/kubernetes/ssl/etcd/server.key", "/etc/kubernetes/ssl/sa.pub", "/etc/kubernetes/ssl/external-etcd/ca.crt", "/srv/etcd/a", "/srv/etcd", "/srv",
		"/var/lib/kubelet", "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/kubeadm-flags.env", "/var/lib/kubelet/pki/kubelet.crt", "/var/lib/kubelet/pods/a",
		"/var/lib/kubelet/cpu_manager_state", "/var/lib/kubelet/device-plugins/a",
	} {
		assert.True(t, refused(path), path)
	}
}

// TestNumericOwners: the owner of a file may be a user that only a container has.
func TestNumericOwners(t *testing.T) {
	t.Parallel()
	s, violations, err := spec(t, initSpec+`files: [{path: /etc/kubernetes/audit/policy.yaml, content: x, owner: "65532:0"}]`)
	require.NoError(t, err)
	require.Empty(t, violations)
	assert.Equal(t, &sdk.Owner{UID: 65532, GID: 0}, s.Files[0].Owner)
}
