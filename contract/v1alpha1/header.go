// Package v1alpha1 holds the document kinds of machineadm.cluster.x-k8s.io/v1alpha1 as plain Go structs.
//
// The structs belong to the contract, because several providers serve one kind and the controller has a custom resource for each. The
// package does not import Kubernetes.
//
// The rules of a field that hold for every provider are markers of controller-gen (+kubebuilder:validation) at the end of its comment, or
// of the comment of its alias; those that compare fields are at the end of the comment of the struct, in CEL. The JSON schemas and the
// definitions of the custom resources are generated from them: make generate. An optional field may be an empty string, which equals an
// absent one, and no marker mentions it. MaxItems and MaxProperties bound the cost of rules in the API server, and are for custom
// resources alone.
package v1alpha1

import (
	"cmp"
	"time"

	"github.com/machineadm/machineadm/contract/target"
)

// Group is the API group of the kinds of machineadm.
const Group = "machineadm.cluster.x-k8s.io"

// Version is the version of the kinds in this package.
const Version = "v1alpha1"

// APIVersion is the apiVersion of every document of this package.
const APIVersion = Group + "/" + Version

// DefaultTimeout is the time limit of a document without metadata.timeout.
const DefaultTimeout = 15 * time.Minute

// Header is the common start of all documents.
type Header struct {
	// APIVersion is the API group and version, for example machineadm.cluster.x-k8s.io/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is the kind of the document, which determines the type of its plugin.
	Kind string `json:"kind"`
	// Metadata holds the name of the document and the conditions under which it applies.
	Metadata Metadata `json:"metadata"`
}

// Metadata is the part of a document that the host reads.
type Metadata struct {
	// Name is a DNS subdomain, unique within the kind in a stream.
	//
	// +kubebuilder:validation:Pattern=`^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$`
	Name string `json:"name"`
	// Timeout bounds the time to apply the document, as a Go duration such as 5m. Default 15m.
	Timeout Duration `json:"timeout,omitempty"`
	// When limits the document to some machines; on others its outcome is NotApplicable.
	When *target.Selector `json:"when,omitempty"`
}

// Limit returns the time limit of the document. It is 0 or less for a timeout that machineadm refuses.
func (m Metadata) Limit() time.Duration {
	limit, _ := time.ParseDuration(cmp.Or(m.Timeout, DefaultTimeout.String())) // 0 if it is no duration
	return limit
}
