package kubernetesnode

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

// build returns where a node has the host and the plugins, by the files to copy.
func build(t *testing.T) map[string]string {
	t.Helper()
	needs.Tier(t, needs.Cluster)
	built, programs := t.TempDir(), map[string]string{}
	sources := map[string]string{}
	for to, source := range map[string]string{
		"/usr/bin/machineadm":                                                    "host/cmd/machineadm",
		"/usr/libexec/machineadm/" + plugin:                                      "plugins/kubernetes-node/kubeadm",
		"/usr/libexec/machineadm/machineadm-sysctl-plugin-procfs":                "plugins/sysctl/procfs",
		"/usr/libexec/machineadm/machineadm-timesync-plugin-chronyd":             "plugins/timesync/chronyd",
		"/usr/libexec/machineadm/machineadm-container-runtime-plugin-containerd": "plugins/container-runtime/containerd",
	} {
		name := filepath.Base(to)
		sources[name], programs[filepath.Join(built, name)] = source, to
	}
	require.NoError(t, tools.Products(t.Context(), built, sources))
	return programs
}
