// Package emit turns documents into a stream: it orders them, and encodes them to bytes that are the same for the same input.
//
// It is pure and does not import Kubernetes.
package emit

import (
	"slices"
	"strings"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
)

// Document is a document before it has its place in the stream.
type Document struct {
	contract.Header
	// Spec is a spec of contract/v1alpha1 for its kinds, whose secrets are written as {value: ...}, and json.RawMessage for
	// others.
	Spec any `json:"spec"`
	// Before and After list the documents that come after and before this one: KIND for all of a kind, or KIND/NAME.
	Before []string `json:"-"`
	After  []string `json:"-"`
	// Bytes is the size of the spec before the values of Secrets are in it; 0 if the whole document comes from a Secret.
	Bytes int `json:"-"`
}

// id is KIND/NAME, which is unique in a stream: documents of two groups share their kind's names.
func (d *Document) id() string { return d.Kind + "/" + d.Metadata.Name }

// unranked is the rank of a kind that is not in the list of rank.
const unranked = 5

// rank is the place of a kind of our group among documents without constraints; other kinds come after them.
func (d *Document) rank() int {
	ranks := [unranked]string{
		contract.KindSysctl, contract.KindTimesync, contract.KindDomainJoin, contract.KindContainerRuntime, contract.KindKubernetesNode,
	}
	if rank := slices.Index(ranks[:], d.Kind); rank >= 0 && strings.HasPrefix(d.APIVersion, contract.Group+"/") {
		return rank
	}
	return unranked
}
