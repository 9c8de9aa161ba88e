package member

import (
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// Identity is which node of which cluster a document asks for.
type Identity struct {
	Role     string   `json:"role"`
	Node     string   `json:"node"`
	Endpoint string   `json:"endpoint,omitempty"`
	CAHashes []string `json:"caHashes,omitempty"`
}

// Begun is the intent: kubeadm was started for this identity, and nothing says that it has finished.
type Begun struct {
	Identity
	// Settings is the fingerprint of the settings that kubeadm was to apply; empty if an earlier release began.
	Settings string `json:"settings,omitempty"`
	// Foreign reports that the certificate directory had files that are not of the document.
	Foreign bool `json:"foreign,omitempty"`
	// Resetting reports that kubeadm reset was started: what is left looks like a node, and is incomplete.
	Resetting bool `json:"resetting,omitempty"`
}

// Step is what is left to do.
type Step int

// The steps.
const (
	Nothing Step = iota // the machine is the node
	Run                 // kubeadm has left nothing
	Finish              // the machine is the node, but the end of kubeadm was not seen
	Reset               // what an interrupted run left must be removed first, or has other settings than the document
)

// Decide compares what a document asks for with what is there. Wanted is the fingerprint of the document's settings, own the certificates
// that it brings, and record is the file of the intent. An error is a Precondition. Before a Reset for controlPlaneInit call Alone.
func Decide(want Identity, wanted string, have Observed, begun *Begun, own []string, record string) (Step, []sdk.Warning, error) {
	left := have.Left
	if begun != nil && !begun.Foreign { // otherwise the administrator brings them
		left = slices.Concat(left, have.Others(own))
	}
	complete := have.Node != ""
	switch {
	case len(left) == 0:
		return Run, nil, nil
	case begun == nil && !complete:
		return 0, nil, refuse("an earlier installation of Kubernetes is incomplete: "+left[0]+" exists",
			"kubeadm reset removes it, if the machine is no node; then run again")
	case begun == nil:
		warnings, err := same(want, have)
		return Nothing, warnings, err
	case !reflect.DeepEqual(begun.Identity, want):
		return 0, nil, refuse("an earlier run for another node was interrupted: "+left[0]+" exists",
			"complete it with the same document; or kubeadm reset, then run again")
	case begun.Resetting:
		return Reset, nil, nil
	case complete && have.Rotated && want.Role != settings.Join && (begun.Settings == "" || begun.Settings == wanted):
		warnings, err := same(want, have)
		return Finish, warnings, err
	case begun.Foreign:
		return 0, nil, refuse("an earlier run was interrupted, and kubeadm reset would delete certificates that it did not create",
			"keep a copy of the certificates of the cluster, kubeadm reset, put them back, then run again")
	case want.Role == settings.Join && slices.ContainsFunc(left, startedKubelet):
		return 0, nil, refuse("an earlier run was interrupted after this machine could have become a member of the cluster's etcd",
			"if it is a complete control plane, remove "+record+"; otherwise kubeadm reset here, and on another control plane "+
				"etcdctl member remove; then run again")
	}
	return Reset, nil, nil
}

// Others returns the certificates that the document does not bring.
func (o Observed) Others(own []string) []string {
	return slices.DeleteFunc(slices.Clone(o.Certificates), func(file string) bool { return slices.Contains(own, file) })
}

// startedKubelet reports a file that kubeadm join writes right before it announces a member of etcd.
func startedKubelet(file string) bool { return strings.HasSuffix(file, "kubelet.conf") }

// same refuses another node or another cluster. Both are final: only people can tell what is wrong.
func same(want Identity, have Observed) ([]sdk.Warning, error) {
	const hint = "correct the document; or, to make the machine another node: kubectl delete node and kubeadm reset, then run again"
	var problems []sdk.Violation
	add := func(field, message string) {
		problems = append(problems, sdk.Violation{Field: field, Message: message, Hint: hint})
	}
	if want.Node != have.Node {
		add("spec.node.name", fmt.Sprintf("the machine is a node already, with the name %s", have.Node))
	}
	if have.ControlPlane != (want.Role != settings.Worker) {
		add("spec.role", map[bool]string{
			true: "the machine is a node already, as a control plane", false: "the machine is a node already, as a worker",
		}[have.ControlPlane])
	}
	moved := want.Endpoint != "" && normal(want.Endpoint) != normal(have.Endpoint)
	switch {
	case len(want.CAHashes) > 0 && !slices.Contains(want.CAHashes, have.CAHash):
		add("spec.cluster", "the machine is a node of another cluster already, with the certificate authority "+have.CAHash)
	case len(want.CAHashes) == 0 && moved:
		add("spec.cluster.endpoint", "the machine is a node of the cluster at "+have.Endpoint+" already")
	case moved:
		message := "the node uses another address of the cluster, " + have.Endpoint
		return []sdk.Warning{{Field: "spec.cluster.endpoint", Message: message}}, nil
	}
	if len(problems) == 0 {
		return nil, nil
	}
	return nil, sdk.Final(sdk.Preconditions(problems...))
}

func refuse(message, hint string) error { return sdk.Final(sdk.Precondition(message, hint)) }

// normal adds the port that kubeadm adds.
func normal(endpoint string) string {
	if _, _, err := net.SplitHostPort(endpoint); err != nil {
		endpoint = net.JoinHostPort(strings.Trim(endpoint, "[]"), "6443")
	}
	return strings.ToLower(endpoint)
}
