package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// kubeadm alone makes a cluster of two nodes, whose kubelets run the control plane. That machineadm makes one is a test of
// testenv/kubernetesnode.
func TestInitAndJoin(t *testing.T) {
	t.Parallel()
	needs.Campaign(t)
	network := nodes.NewNetwork(t, "control", "worker")
	control, worker := Boot(t, network, "control", true), Boot(t, network, "worker", false)
	address := network.Address("control").String()
	kubeadm := func(n *nodes.Node, script string, argv ...string) {
		t.Helper()
		r, err := n.Exec(t.Context(), append([]string{"sh", "-c", script, "sh", IgnoredPreflightErrors}, argv...)...)
		require.NoError(t, err)
		if r.ExitCode != 0 {
			log := n.MustExec(t, "sh", "-c", "journalctl -u kubelet -n 60 --no-pager -o cat; ctr -n k8s.io containers ls")
			t.Fatalf("kubeadm: exit status %d\n%s%s\n%s", r.ExitCode, r.Stdout, r.Stderr, log.Stdout)
		}
	}
	kubeadm(control, `echo "$2" | kubeadm init --config=/dev/stdin --ignore-preflight-errors="$1"`,
		Configuration("control", address))
	kubeadm(worker, `kubeadm join "$2" --token="$3" --discovery-token-ca-cert-hash="$4" --ignore-preflight-errors="$1"`,
		address+":6443", Token, CACertHash(t, control))
	AwaitReady(t, control, "/api/v1/nodes", 2)
	AwaitReady(t, control, "/api/v1/namespaces/kube-system/pods?labelSelector=tier%3Dcontrol-plane", 4)
	assert.NotEmpty(t, worker.MustExec(t, "cat", "/var/lib/kubelet/config.yaml").Stdout)
}
