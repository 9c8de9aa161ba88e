package kubernetesnode

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/cluster"
)

// holdKubelet keeps the kubelet from starting until releaseKubelet.
const (
	holdKubelet = `set -eu
mkdir -p /run/systemd/system/kubelet.service.d
printf '[Unit]\nConditionPathExists=/run/absent\n' >/run/systemd/system/kubelet.service.d/hold.conf
systemctl daemon-reload
systemctl stop kubelet`
	releaseKubelet = `rm /run/systemd/system/kubelet.service.d/hold.conf && systemctl daemon-reload`
)

// kill waits for a condition and kills all processes of a unit.
const kill = `while ! eval "$1"; do
	systemctl --quiet is-active "$2" || exit 1
done
systemctl kill --signal=KILL "$2"`

// killed applies the stream and kills the host, the plugin and kubeadm as soon as a condition of the shell holds.
func (n node) killed(t *testing.T, condition string) {
	t.Helper()
	// Without a name of one's own it is free each time.
	unit := strings.TrimSpace(strings.TrimPrefix(
		n.MustExec(t, "systemd-run", "machineadm", "apply", "--path", stream).Stderr, "Running as unit: "))
	r, err := n.Exec(t.Context(), "timeout", "600", "sh", "-c", kill, "sh", condition, unit)
	require.NoError(t, err)
	require.Zero(t, r.ExitCode, "%s\n%s", r.Stderr, n.MustExec(t, "journalctl", "--unit="+unit, "--output=cat", "--no-pager").Stdout)
	require.Eventually(t, func() bool {
		r, err := n.Exec(t.Context(), "pgrep", "-x", "kubeadm|machineadm.*")
		return err == nil && r.ExitCode == 1
	}, 4*time.Minute, 50*time.Millisecond)
	require.Equal(t, "ExecMainStatus=9\n", n.MustExec(t, "systemctl", "show", "--property=ExecMainStatus", unit).Stdout, "the run ended before it was killed")
}

// TestKilled: kubeadm is killed with the host and the plugin, again and again, at moments after which the machine is in another
// state each. The same stream makes it the node in the end, and says before what it is about to do.
func TestKilled(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "control", "worker")
	endpoint := f.network.Address("control").String() + ":6443"
	first := f.boot(t, "control", true)
	first.write(t, control, "ENDPOINT", endpoint, "ADDRESS", first.Address().String())
	killedInit(t, first)
	cluster.AwaitReady(t, first.Node, controlPodsPath, 4)

	second := f.boot(t, "worker", false)
	second.write(t, worker, "ENDPOINT", endpoint, "ADDRESS", second.Address().String(), "HASH", cluster.CACertHash(t, first.Node))
	killedJoin(t, second)
	cluster.AwaitReady(t, first.Node, nodesPath, 2)
	for _, n := range []node{first, second} {
		n.unchanged(t)
		n.noSecrets(t)
	}
}

func killedInit(t *testing.T, n node) {
	t.Helper()
	n.MustExec(t, "sh", "-c", holdKubelet)
	n.killed(t, "[ -e /etc/kubernetes/manifests/kube-apiserver.yaml ]")
	n.MustExec(t, "sh", "-c", "test ! -e /var/lib/etcd/member && "+releaseKubelet)
	require.Contains(t, n.run(t, report.ExitDiffers, "plan"), "remove what an interrupted kubeadm init left (kubeadm reset)")

	// The next run creates the cluster again, and ends when etcd has data. Whether other nodes have joined is in the API server.
	n.killed(t, "[ -e /var/lib/etcd/member ] && pgrep -x kube-apiserver >/run/pid")
	n.MustExec(t, "sh", "-c", "systemctl stop kubelet && pkill -KILL -x kube-apiserver")
	refused := n.run(t, report.ExitPrecondition, "apply")
	require.Contains(t, refused, "it is unknown whether other nodes have joined the cluster since")
	require.Contains(t, refused, "wait for the API server of this machine and run again")
	n.MustExec(t, "test", "-e", "/var/lib/etcd/member")
	n.MustExec(t, "systemctl", "start", "kubelet")
	require.Eventually(t, func() bool { return cluster.Get(t, n.Node, nodesPath, &struct{}{}) == nil }, 8*time.Minute, 100*time.Millisecond)

	// With the answer of the API server the run after that begins anew, and ends when only the add-ons are missing.
	require.Contains(t, n.run(t, report.ExitDiffers, "plan"), "remove what an interrupted kubeadm init left (kubeadm reset)")
	n.killed(t, "grep -qs kubelet-client-current.pem /etc/kubernetes/kubelet.conf")
	require.Contains(t, n.run(t, report.ExitDiffers, "plan"), "install the add-ons that an interrupted kubeadm init did not")
	n.apply(t)
}

func killedJoin(t *testing.T, n node) {
	t.Helper()
	n.MustExec(t, "sh", "-c", holdKubelet)
	n.killed(t, "[ -e /etc/kubernetes/bootstrap-kubelet.conf ]")
	n.MustExec(t, "sh", "-c", "test ! -e /etc/kubernetes/kubelet.conf && "+releaseKubelet)
	require.Contains(t, n.run(t, report.ExitDiffers, "plan"), "remove what an interrupted kubeadm join left (kubeadm reset)")

	n.killed(t, "[ -e /etc/kubernetes/kubelet.conf ]")
	require.Contains(t, n.run(t, report.ExitDiffers, "plan"), "remove the credentials of an interrupted kubeadm join")
	n.apply(t)
}
