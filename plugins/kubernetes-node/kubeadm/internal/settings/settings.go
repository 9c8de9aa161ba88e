// Package settings checks KubernetesNode documents and completes them with defaults, profiles and values of the machine.
package settings

import (
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/release"
	"github.com/machineadm/machineadm/sdk"
)

// The roles of a node.
const (
	Init   = v1alpha1.ControlPlaneInit
	Join   = v1alpha1.ControlPlaneJoin
	Worker = v1alpha1.Worker
)

// DefaultCertificatesDir is the directory of certificates without spec.cluster.certificatesDir.
const DefaultCertificatesDir = "/etc/kubernetes/pki"

// Settings is a valid document, completed for one machine.
type Settings struct {
	// Spec is the document with its defaults and with the arguments that its profiles ask for. Manifests and patches in it
	// are JSON.
	Spec v1alpha1.KubernetesNodeSpec
	// Windows reports whether the machine runs Windows.
	Windows bool
	// Version is spec.kubernetesVersion.
	Version release.Version
	// NodeName is the name of the node. In an image it is empty unless the document has it, as the next three.
	NodeName string
	// NodeIPs are the addresses of the node; none leaves the choice to the kubelet.
	NodeIPs []netip.Addr
	// Advertised is the address of the API server of a control plane; the zero value leaves the choice to kubeadm.
	Advertised netip.Addr
	// ProviderID identifies the machine at its infrastructure provider, empty for none.
	ProviderID string
	// Kubelet and KubeProxy are fields of KubeletConfiguration and KubeProxyConfiguration. A nil value removes the field.
	Kubelet, KubeProxy map[string]any
	// FeatureGates are kubeadm's own.
	FeatureGates map[string]bool
	// Timeouts are spec.timeouts and those that the time limit of the document asks for. kubeadm 1.30 cannot express some of
	// these, and keeps its own.
	Timeouts v1alpha1.NodeTimeouts
	// Files are spec.files and spec.staticPods, in order. They stay managed when the machine is a node.
	Files []File
	// Modes are files of kubeadm whose mode is restricted when the machine is a node.
	Modes []Mode
	// Credentials are files that kubeadm reads before the machine is a node and that belong to Kubernetes from then on:
	// certificate authorities, and certificates for an external etcd.
	Credentials []File
	// Cluster is what the cluster that the node joins says; nil as long as it was not asked.
	Cluster *Cluster
	// Warnings are of a document that is valid and may not work.
	Warnings []sdk.Warning
	// WorkDir is the directory, with mode 0700, of what kubeadm reads from files besides: see render.Rendered. It must not
	// outlive kubeadm.
	WorkDir string
}

// The names of kubeadm's checks that packets of IPv4 and of IPv6 are forwarded.
const (
	CheckForwarding  = "FileContent--proc-sys-net-ipv4-ip_forward"
	CheckForwarding6 = "FileContent--proc-sys-net-ipv6-conf-default-forwarding"
)

// Ignores reports whether the document turns the failure of one of kubeadm's own checks into a warning.
func (s Settings) Ignores(check string) bool {
	return s.Spec.IgnoreAllPreflightErrors ||
		slices.ContainsFunc(s.Spec.IgnorePreflightErrors, func(name string) bool { return strings.EqualFold(name, check) })
}

// Cluster is what a cluster says of all of its nodes.
type Cluster struct {
	// Subnets are the ranges of pods and services.
	Subnets []string
	// FailSwapOn is the setting of the kubelets.
	FailSwapOn bool
	// CertificatesDir is the directory in which the components of control planes have their certificates, and kubelets the authority of
	// the cluster.
	CertificatesDir string
}

// File is a file that a field of the document asks for.
type File struct {
	sdk.FileSpec
	// Field is the field.
	Field string
	// After means that the file is written after kubeadm has ended.
	After bool
}

// Mode is the mode of a file that a profile asks for.
type Mode struct {
	Path string
	Mode fs.FileMode
}

// ControlPlane reports whether the node is a control plane.
func (s Settings) ControlPlane() bool { return s.Spec.Role != Worker }

// Port is the port of the API server of a control plane.
func (s Settings) Port() int {
	if port := s.Spec.Node.AdvertisePort; port != nil {
		return *port
	}
	return 6443
}

// EtcdFile returns the path of a certificate for an external etcd: ca.crt, client.crt or client.key.
func (s Settings) EtcdFile(name string) string {
	return s.Spec.Cluster.CertificatesDir + "/external-etcd/" + name
}
