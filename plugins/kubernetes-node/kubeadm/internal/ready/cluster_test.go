package ready

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
)

// TestCertificatesDir: the document must name the certificate directory of the cluster, unless the kubelet of a worker reads the authority
// from another file.
func TestCertificatesDir(t *testing.T) {
	t.Parallel()
	const ssl = "/etc/kubernetes/ssl"
	x509 := map[string]any{"authentication": map[string]any{"x509": map[string]any{"clientCAFile": "/a.crt"}}}
	patch := func(target string) []v1alpha1.ComponentPatch {
		return []v1alpha1.ComponentPatch{{Target: target, Patch: `[{"op":"replace","path":"/authentication/x509/clientCAFile","value":"/a.crt"}]`}}
	}
	for name, c := range map[string]struct {
		role, dir, cluster string
		kubelet            map[string]any
		patches            []v1alpha1.ComponentPatch
		args               []v1alpha1.Argument
		refused            bool
	}{
		"the default":                  {role: settings.Worker, dir: settings.DefaultCertificatesDir, cluster: settings.DefaultCertificatesDir},
		"the cluster's":                {role: settings.Worker, dir: ssl, cluster: ssl},
		"the default of a worker":      {role: settings.Worker, dir: settings.DefaultCertificatesDir, cluster: ssl, refused: true},
		"another one of a worker":      {role: settings.Worker, dir: ssl, cluster: settings.DefaultCertificatesDir, refused: true},
		"a control plane's":            {role: settings.Join, dir: settings.DefaultCertificatesDir, cluster: ssl, kubelet: x509, refused: true},
		"a field of the kubelet":       {role: settings.Worker, dir: settings.DefaultCertificatesDir, cluster: ssl, kubelet: x509},
		"another field of the kubelet": {role: settings.Worker, dir: ssl, cluster: "/a", kubelet: map[string]any{"authentication": map[string]any{"x509": map[string]any{}}}, refused: true},
		"a patch":                      {role: settings.Worker, dir: ssl, cluster: "/a", patches: patch("kubeletconfiguration")},
		"a patch of another object":    {role: settings.Worker, dir: ssl, cluster: "/a", patches: patch("etcd"), refused: true},
		"an argument":                  {role: settings.Worker, dir: ssl, cluster: "/a", args: []v1alpha1.Argument{{Name: "client-ca-file", Value: "/a.crt"}}},
	} {
		s := settings.Settings{Kubelet: c.kubelet, Cluster: &settings.Cluster{CertificatesDir: c.cluster}}
		s.Spec.Role, s.Spec.Cluster.CertificatesDir, s.Spec.Patches, s.Spec.Node.KubeletArgs = c.role, c.dir, c.patches, c.args
		all := checker{s: s}
		all.certificatesDir()
		assert.Equal(t, c.refused, len(all.missing) == 1, name)
	}
}
