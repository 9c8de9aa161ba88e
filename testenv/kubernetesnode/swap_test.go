package kubernetesnode

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/nodes"
)

// TestSwapUnits: each release of systemd reads the drop-in that keeps every unit of the type swap from starting. A container has no swap:
// testenv/vm turns it off.
func TestSwapUnits(t *testing.T) {
	t.Parallel()
	const dropIn = "etc/systemd/system/swap.d/zz-machineadm-off.conf"
	content, err := os.ReadFile(filepath.Join("../../plugins/kubernetes-node/kubeadm/testdata/conformance/swap-off/expect", dropIn))
	require.NoError(t, err)
	for _, suite := range nodes.Suites() {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			n := nodes.Boot(t, nodes.Options{Suite: suite, Prepare: func(root string) error {
				for name, text := range map[string]string{dropIn: string(content), "etc/systemd/system/srv-a.swap": "[Swap]\nWhat=/srv/a\n"} {
					if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
						return err
					}
					if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
						return err
					}
				}
				return nil
			}})
			shown := n.MustExec(t, "systemctl", "show", "--property", "DropInPaths", "srv-a.swap").Stdout
			require.Contains(t, shown, "/"+dropIn)
		})
	}
}
