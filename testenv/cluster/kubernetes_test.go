package cluster

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/nodes"
)

// objects are the parts of lists of nodes and of pods that the test reads.
type objects struct {
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Status struct {
			Phase      string `json:"phase"`
			Conditions []struct {
				Type   string `json:"type"`
				Status string `json:"status"`
			} `json:"conditions"`
		} `json:"status"`
	} `json:"items"`
}

// ready counts the objects that are, and names the others.
func (o objects) ready() (ready int, others []string) {
	for _, i := range o.Items {
		met := false
		for _, c := range i.Status.Conditions {
			met = met || c.Type == "Ready" && c.Status == "True"
		}
		if met {
			ready++
		} else {
			others = append(others, i.Metadata.Name+" "+i.Status.Phase)
		}
	}
	return ready, others
}

// kubeadm alone makes a cluster of two nodes, whose kubelets run the control plane.
func TestInitAndJoin(t *testing.T) {
	t.Parallel()
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
		address+":6443", Token, caCertHash(t, control))
	list := func(path string, want int) {
		t.Helper()
		awaited(t, path, func() (bool, string) {
			var o objects
			if err := decode(t, control, path, &o); err != nil {
				return false, err.Error()
			}
			got, others := o.ready()
			return got == want, strings.Join(others, ", ")
		})
	}
	list("/api/v1/nodes", 2)
	list("/api/v1/namespaces/kube-system/pods?labelSelector=tier%3Dcontrol-plane", 4)
	assert.NotEmpty(t, worker.MustExec(t, "cat", "/var/lib/kubelet/config.yaml").Stdout)
}
