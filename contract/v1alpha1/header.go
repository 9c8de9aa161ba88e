// Package v1alpha1 holds the document kinds of machineadm.cluster.x-k8s.io/v1alpha1 as plain Go structs.
//
// The structs belong to the contract, not to a plugin: several providers serve one kind, and the custom resources
// of the controller embed the same specs. The package imports nothing of Kubernetes.
package v1alpha1

import "github.com/machineadm/machineadm/contract/target"

// Group is the API group of the kinds that the project defines.
const Group = "machineadm.cluster.x-k8s.io"

// Version is the version of the kinds in this package.
const Version = "v1alpha1"

// APIVersion is the apiVersion of every document of this package.
const APIVersion = Group + "/" + Version

// The kinds of this group and version.
const (
	KindContainerRuntime = "ContainerRuntime"
	KindTimesync         = "Timesync"
	KindSysctl           = "Sysctl"
	KindDomainJoin       = "DomainJoin"
	KindKubernetesNode   = "KubernetesNode"
	KindRemoteConfig     = "RemoteConfig"
	KindEncryptedConfig  = "EncryptedConfig"
)

// Kinds lists every kind of this group and version. The slice is the caller's.
func Kinds() []string {
	return []string{
		KindContainerRuntime, KindTimesync, KindSysctl, KindDomainJoin,
		KindKubernetesNode, KindRemoteConfig, KindEncryptedConfig,
	}
}

// ServedKinds lists the kinds for which this release has a specification and a plugin. The slice is the caller's.
func ServedKinds() []string { return []string{KindContainerRuntime, KindSysctl} }

// New returns a pointer to an empty document of a kind that this release serves, nil for any other.
func New(kind string) any {
	switch kind {
	case KindContainerRuntime:
		return &ContainerRuntime{}
	case KindSysctl:
		return &Sysctl{}
	}
	return nil
}

// Header is what every document starts with.
type Header struct {
	// APIVersion is the API group and version, for example machineadm.cluster.x-k8s.io/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind says what the document describes; it decides which type of plugin serves it.
	Kind string `json:"kind"`
	// Metadata names the document and says when it applies.
	Metadata Metadata `json:"metadata"`
}

// Metadata is the part of a document that the host reads.
type Metadata struct {
	// Name is a DNS subdomain, unique within the kind in a stream.
	Name string `json:"name"`
	// Timeout bounds the time that applying the document may take, as a Go duration such as 5m. Default 15m.
	Timeout string `json:"timeout,omitempty"`
	// When limits the document to some machines; on others its outcome is NotApplicable.
	When *target.Selector `json:"when,omitempty"`
}
