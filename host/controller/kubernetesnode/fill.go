// Package kubernetesnode completes a KubernetesNode document with what Cluster API has of a machine and of its cluster.
package kubernetesnode

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
)

// Facts are what Cluster API has of a machine and of its cluster. A zero field adds nothing.
type Facts struct {
	// Role is one of the roles of a machine.
	Role string
	// Version is Machine.spec.version.
	Version string
	// Cluster is the name of the cluster.
	Cluster string
	// Endpoint is HOST:PORT of Cluster.spec.controlPlaneEndpoint.
	Endpoint string
	// DNSDomain, PodSubnets and ServiceSubnets come from Cluster.spec.clusterNetwork.
	DNSDomain                  string
	PodSubnets, ServiceSubnets []string
	// Certificates are for control planes.
	Certificates *contract.ClusterCertificates
	// Token and CACertHashes are for machines that join.
	Token        string
	CACertHashes []string
	// Uninitialized is the taint of a worker until Cluster API has labeled its node.
	Uninitialized contract.Taint
}

// Contradiction is a field of the document that Cluster API has another value of.
type Contradiction struct {
	// Field is the path in the document.
	Field string
	// Message says what contradicts, and the remedy.
	Message string
}

// Fill completes the document. It changes nothing if something contradicts.
func Fill(spec *contract.KubernetesNodeSpec, f *Facts) []Contradiction {
	var found []Contradiction
	same := func(field, have, want, source string) {
		if have != "" && want != "" && have != want {
			found = append(found, Contradiction{field, fmt.Sprintf("is %q, but %s is %q: remove the field", have, source, want)})
		}
	}
	same("spec.role", spec.Role, f.Role, "the role of the Machine")
	same("spec.kubernetesVersion", version(spec.KubernetesVersion), version(f.Version), "Machine.spec.version")
	same("spec.cluster.name", spec.Cluster.Name, f.Cluster, "the name of the Cluster")
	same("spec.cluster.endpoint", spec.Cluster.Endpoint, f.Endpoint, "Cluster.spec.controlPlaneEndpoint")
	if f.Role == contract.ControlPlaneInit {
		network := "Cluster.spec.clusterNetwork."
		same("spec.cluster.dnsDomain", spec.Cluster.DNSDomain, f.DNSDomain, network+"serviceDomain")
		same("spec.cluster.podSubnets", strings.Join(spec.Cluster.PodSubnets, ","), strings.Join(f.PodSubnets, ","), network+"pods")
		same("spec.cluster.serviceSubnets", strings.Join(spec.Cluster.ServiceSubnets, ","), strings.Join(f.ServiceSubnets, ","),
			network+"services")
	}
	if spec.Role == f.Role { // without a role the document is for machines of several ones
		for _, misplaced := range spec.Misplaced() {
			found = append(found, Contradiction{misplaced.Field, "is for the role " + strings.Join(misplaced.Roles, " or ") + " only: remove it, or remove spec.role"})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(spec.Node.Labels)) {
		if !contract.IsKubeletLabel(key) {
			found = append(found, Contradiction{"spec.node.labels", "has " + key + ", which a kubelet must not set on its node: remove it, and label the Node"})
		}
	}
	if spec.KubernetesVersion == "" && f.Version == "" {
		found = append(found, Contradiction{"spec.kubernetesVersion", "is required: set Machine.spec.version"})
	}
	if len(found) > 0 {
		return found
	}
	spec.Role = f.Role
	spec.Fit()
	spec.KubernetesVersion = version(first(spec.KubernetesVersion, f.Version))
	spec.Cluster.Name, spec.Cluster.Endpoint = f.Cluster, first(spec.Cluster.Endpoint, f.Endpoint)
	if f.Role == contract.ControlPlaneInit {
		initialize(spec, f)
	} else {
		join(spec, f)
	}
	if f.Role == contract.Worker {
		taint(spec, f.Uninitialized)
	} else if spec.Certificates == nil {
		spec.Certificates = f.Certificates
	}
	if f.Role == contract.ControlPlaneJoin && spec.Certificates != nil {
		spec.CertificateKey = nil // it would download them
	}
	return nil
}

func initialize(spec *contract.KubernetesNodeSpec, f *Facts) {
	spec.Cluster.DNSDomain = first(spec.Cluster.DNSDomain, f.DNSDomain)
	if len(spec.Cluster.PodSubnets) == 0 {
		spec.Cluster.PodSubnets = f.PodSubnets
	}
	if len(spec.Cluster.ServiceSubnets) == 0 {
		spec.Cluster.ServiceSubnets = f.ServiceSubnets
	}
}

// join keeps a discovery of the document: a token that its author made, or a kubeconfig.
func join(spec *contract.KubernetesNodeSpec, f *Facts) {
	if !OwnDiscovery(spec) {
		if spec.Discovery == nil {
			spec.Discovery = &contract.Discovery{}
		}
		token := contract.NewSecret([]byte(f.Token))
		spec.Discovery.Token = &token
	}
	if spec.Discovery.Kubeconfig == nil && len(spec.Discovery.CACertHashes) == 0 {
		spec.Discovery.CACertHashes = f.CACertHashes
	}
}

// OwnDiscovery says whether the document has credentials to join, so that the machine needs no token of ours.
func OwnDiscovery(spec *contract.KubernetesNodeSpec) bool {
	return spec.Discovery != nil && (spec.Discovery.Token != nil || spec.Discovery.Kubeconfig != nil)
}

func taint(spec *contract.KubernetesNodeSpec, add contract.Taint) {
	if add.Key != "" && !slices.Contains(spec.Node.Taints, add) {
		spec.Node.Taints = append(slices.Clone(spec.Node.Taints), add)
	}
}

// version has the leading v that the contract wants and Machine.spec.version may lack.
func version(text string) string {
	if text == "" || strings.HasPrefix(text, "v") {
		return text
	}
	return "v" + text
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
