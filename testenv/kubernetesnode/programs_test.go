package kubernetesnode

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// build returns where a node has the host and the plugins that it builds.
func build(t *testing.T) map[string]string {
	t.Helper()
	built, programs := t.TempDir(), map[string]string{}
	for to, pkg := range map[string]string{
		"/usr/bin/machineadm":                                                    "host/cmd/machineadm",
		"/usr/libexec/machineadm/" + plugin:                                      "plugins/kubernetes-node/kubeadm",
		"/usr/libexec/machineadm/machineadm-sysctl-plugin-procfs":                "plugins/sysctl/procfs",
		"/usr/libexec/machineadm/machineadm-timesync-plugin-chronyd":             "plugins/timesync/chronyd",
		"/usr/libexec/machineadm/machineadm-container-runtime-plugin-containerd": "plugins/container-runtime/containerd",
	} {
		out := filepath.Join(built, filepath.Base(to))
		command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, "../../"+pkg)
		command.Env = append(os.Environ(), "CGO_ENABLED=0")
		said, err := command.CombinedOutput()
		require.NoError(t, err, string(said))
		programs[out] = to
	}
	return programs
}
