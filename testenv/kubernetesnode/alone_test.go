package kubernetesnode

//machineadm:alone

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/cluster"
)

// members asks the etcd of the node; its arguments are a path below /v3/cluster/member/ and a message.
const members = `exec curl --silent --show-error --fail-with-body --max-time 10 --cacert /etc/kubernetes/pki/etcd/ca.crt \
	--cert /etc/kubernetes/pki/apiserver-etcd-client.crt --key /etc/kubernetes/pki/apiserver-etcd-client.key \
	--data "$2" "https://127.0.0.1:2379/v3/cluster/member/$1"`

// alone lets a creation fail when the API server serves, because the machine never gets its Node. What is left is removed as
// long as the real API server has no other node and the real etcd has no other member.
func alone(t *testing.T, n applicant, values []string) {
	n.fails(t, failure{
		text: creating, values: values, wait: time.Minute, phase: "mark-control-plane",
		message: "kubeadm init failed in the phase mark-control-plane: ", cause: `nodes "control" not found`, remedy: "see ",
	})
	planned := func(exit int, says string) {
		t.Helper()
		r := n.run(t, "plan", creating, values...)
		require.Equal(t, exit, r.ExitCode, r.Stdout+r.Stderr)
		require.Contains(t, r.Stdout+r.Stderr, says)
	}
	reset := func() {
		t.Helper()
		planned(report.ExitDiffers, "remove what an interrupted kubeadm init left (kubeadm reset)")
	}
	refused := func() { t.Helper(); planned(report.ExitPrecondition, "other nodes have joined the cluster since") }
	create := func(name string) {
		t.Helper()
		object := `{"apiVersion":"v1","kind":"Node","metadata":{"name":"` + name + `"}}`
		cluster.API(t, n.Node, "/api/v1/nodes", "--header", "Content-Type: application/json", "--data", object)
	}
	reset() // no node
	create("control")
	reset() // this one
	create("other")
	refused()
	cluster.API(t, n.Node, "/api/v1/nodes/other", "--request", "DELETE")
	reset()

	added := n.MustExec(t, "sh", "-c", members, "sh", "add", `{"peerURLs":["https://10.77.0.99:2380"],"isLearner":true}`).Stdout
	var answer struct {
		Member struct {
			ID string `json:"ID"`
		} `json:"member"`
	}
	require.NoError(t, json.Unmarshal([]byte(added), &answer))
	refused()
	n.MustExec(t, "sh", "-c", members, "sh", "remove", `{"ID":"`+answer.Member.ID+`"}`)
	reset()

	n.MustExec(t, "sh", "-c", "systemctl stop kubelet && kill $(pgrep -x kube-apiserver)")
	require.Eventually(t, func() bool {
		r, err := n.Exec(t.Context(), "pgrep", "-x", "kube-apiserver")
		return err == nil && r.ExitCode == 1
	}, 4*time.Minute, 100*time.Millisecond)
	planned(report.ExitPrecondition, "it is unknown whether other nodes have joined the cluster since: the API server does not answer")
	n.MustExec(t, "systemctl", "start", "kubelet")
	require.Eventually(t, func() bool {
		return n.run(t, "plan", creating, values...).ExitCode == report.ExitDiffers
	}, 8*time.Minute, 500*time.Millisecond)
}
