package kubernetesnode

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/cluster"
)

const (
	// holdKubelet keeps the kubelet from starting until releaseKubelet: kubeadm waits for it, or for the API server, a minute or more.
	holdKubelet = `set -eu
mkdir -p /run/systemd/system/kubelet.service.d
printf '[Unit]\nConditionPathExists=/run/absent\n' >/run/systemd/system/kubelet.service.d/hold.conf
systemctl daemon-reload
systemctl stop kubelet`
	releaseKubelet = `rm /run/systemd/system/kubelet.service.d/hold.conf; systemctl daemon-reload; systemctl start kubelet`

	// holdRestart keeps kubeadm init in the restart of the kubelet before the add-ons, until releaseRestart.
	holdRestart = `set -eu
touch /run/hold
cat >/run/systemd/system/kubelet.service.d/hold.conf <<'END'
[Service]
TimeoutStartSec=infinity
ExecStartPre=/bin/sh -c 'while [ -e /run/hold ] && grep -qs kubelet-client-current.pem /etc/kubernetes/kubelet.conf; do sleep 0.1; done'
END
systemctl daemon-reload`
	releaseRestart = `rm /run/hold && systemctl start kubelet`
)

// Progress of a run. While the kubelet does not start, the first is the last that kubeadm reports before it waits.
const (
	startingKubelet  = "starting the kubelet"
	finishingKubelet = "finishing the configuration of the kubelet"
)

// kill starts a run as unit $1, waits until it reports the progress $3, runs the script $4, and kills the run. The run keeps the
// FIFO open for reading too, so that it can write when this script reads no longer.
const kill = `set -eu
rm -f /run/events
mkfifo /run/events
systemd-run --quiet --unit="$1" sh -c 'exec machineadm apply --path "$0" --output json 1<>/run/events' "$2"
reached=
while [ -z "$reached" ] && read -r event; do
	printf '%s\n' "$event"
	case $event in *'"type":"progress"'*"$3"*) reached=yes ;; esac
done </run/events
[ "$reached" ]
eval "$4"
systemctl kill --signal=KILL "$1"`

// killed applies the stream, runs a script when the run reports the progress, and kills the host, the plugin and kubeadm.
func (n node) killed(t *testing.T, progress, script string) {
	t.Helper()
	unit := fmt.Sprintf("killed-%d.service", time.Now().UnixNano()) // one that was killed keeps its name
	r, err := n.Exec(t.Context(), "timeout", "900", "sh", "-c", kill, "sh", unit, stream, progress, script)
	require.NoError(t, err)
	require.Zero(t, r.ExitCode, "%s%s\n%s", r.Stdout, r.Stderr, n.MustExec(t, "journalctl", "--unit="+unit, "--output=cat", "--no-pager").Stdout)
	require.Eventually(t, func() bool {
		r, err := n.Exec(t.Context(), "pgrep", "-x", "kubeadm|machineadm.*")
		return err == nil && r.ExitCode == 1
	}, 4*time.Minute, 50*time.Millisecond)
	require.Equal(t, "ExecMainStatus=9\n", n.MustExec(t, "systemctl", "show", "--property=ExecMainStatus", unit).Stdout, "the run ended before it was killed")
}

// until is a script that waits for a condition of the shell.
func until(condition string) string { return "until " + condition + "; do sleep 0.1; done; " }

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

// stopped is a script that stops kubeadm when it has written what the kubelet reads, and then lets the kubelet start: what that does leads
// to no further step of kubeadm, however late the script sees it.
const stopped = "until [ -s /var/lib/kubelet/kubeadm-flags.env ] && [ -s /var/lib/kubelet/config.yaml ]; do sleep 0.1; done; " +
	"pkill -STOP -x kubeadm; " + releaseKubelet + "; "

func killedInit(t *testing.T, n node) {
	t.Helper()
	n.MustExec(t, "sh", "-c", holdKubelet)
	n.killed(t, startingKubelet, "[ -e /etc/kubernetes/manifests/kube-apiserver.yaml ]")
	n.MustExec(t, "test", "!", "-e", "/var/lib/etcd/member")
	require.Contains(t, n.run(t, report.ExitDiffers, "plan"), "remove what an interrupted kubeadm init left (kubeadm reset)")

	// The next run creates the cluster again, and ends when etcd has data. Whether other nodes have joined is in the API server.
	n.killed(t, startingKubelet, stopped+until("[ -e /var/lib/etcd/member ] && pgrep -x kube-apiserver >/run/pid"))
	n.MustExec(t, "sh", "-c", "systemctl stop kubelet && pkill -KILL -x kube-apiserver")
	refused := n.run(t, report.ExitPrecondition, "apply")
	require.Contains(t, refused, "it is unknown whether other nodes have joined the cluster since")
	require.Contains(t, refused, "wait for the API server of this machine and run again")
	n.MustExec(t, "test", "-e", "/var/lib/etcd/member")
	n.MustExec(t, "systemctl", "start", "kubelet")
	require.Eventually(t, func() bool { return cluster.Get(t, n.Node, nodesPath, &struct{}{}) == nil }, 8*time.Minute, 100*time.Millisecond)

	// With the answer of the API server the run after that begins anew, and ends when only the add-ons are missing.
	require.Contains(t, n.run(t, report.ExitDiffers, "plan"), "remove what an interrupted kubeadm init left (kubeadm reset)")
	n.MustExec(t, "sh", "-c", holdRestart)
	n.killed(t, finishingKubelet, until("grep -qs kubelet-client-current.pem /etc/kubernetes/kubelet.conf"))
	n.MustExec(t, "sh", "-c", releaseRestart)
	require.Contains(t, n.run(t, report.ExitDiffers, "plan"), "install the add-ons that an interrupted kubeadm init did not")
	n.apply(t)
}

func killedJoin(t *testing.T, n node) {
	t.Helper()
	n.MustExec(t, "sh", "-c", holdKubelet)
	n.killed(t, startingKubelet, "[ -e /etc/kubernetes/bootstrap-kubelet.conf ]")
	n.MustExec(t, "test", "!", "-e", "/etc/kubernetes/kubelet.conf")
	require.Contains(t, n.run(t, report.ExitDiffers, "plan"), "remove what an interrupted kubeadm join left (kubeadm reset)")

	// The kubelet gets its credentials while kubeadm is stopped.
	n.killed(t, startingKubelet, stopped+until("[ -e /etc/kubernetes/kubelet.conf ]"))
	require.Contains(t, n.run(t, report.ExitDiffers, "plan"), "remove the credentials of an interrupted kubeadm join")
	n.apply(t)
}
