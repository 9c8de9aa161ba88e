package vm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// TestSwapOff: with the drop-in of spec.node.swap: off, nothing that wants a unit of swap turns it on: neither one of a package, nor one
// of /etc/fstab. Without it, both are on.
func TestSwapOff(t *testing.T) {
	require.Tier(t, require.VM)
	t.Parallel()
	const dropIn = "/etc/systemd/system/swap.d/zz-machineadm-off.conf"
	content, err := os.ReadFile(filepath.Join("../../plugins/kubernetes-node/kubeadm/testdata/conformance/swap-off/expect", dropIn))
	if err != nil {
		t.Fatal(err)
	}
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Bookworm, VM: true, Prepare: nodes.InOrder(
		file("/etc/systemd/system/srv-a.swap", "[Swap]\nWhat=/srv/a\n[Install]\nWantedBy=multi-user.target\n", 0o644),
		file("/etc/fstab", "/srv/b none swap sw 0 0\n", 0o644),
	)})
	const start = "systemctl daemon-reload; systemctl start srv-a.swap swap.target; swapon --show=NAME --noheadings"
	n.MustExec(t, "sh", "-c", "for f in /srv/a /srv/b; do dd if=/dev/zero of=$f bs=1M count=4 && chmod 600 $f && mkswap $f; done; systemctl enable srv-a.swap")
	if on := n.MustExec(t, "sh", "-c", start).Stdout; len(strings.Fields(on)) != 2 {
		t.Fatalf("without the drop-in are on: %s", on)
	}
	n.MustExec(t, "sh", "-c", "swapoff -a; systemctl stop swap.target; mkdir -p "+filepath.Dir(dropIn)+"; cat >"+dropIn+" <<'END'\n"+string(content)+"END\n")
	if on := n.MustExec(t, "sh", "-c", start).Stdout; on != "" {
		t.Errorf("with the drop-in are on: %s", on)
	}
}
