package settings

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/release"
	"github.com/machineadm/machineadm/sdk"
)

// Resolve returns the settings of a document, or all of its violations. The error is a Precondition with every field whose
// source on the machine does not exist yet. In an image the values of the machine stay empty.
func Resolve(m sdk.Machine, doc v1alpha1.KubernetesNode) (Settings, []sdk.Violation, error) {
	s, violations, err := resolve(m, doc.Spec, interfaceAddresses)
	s.Timeouts = timeouts(doc.Spec.Timeouts, doc.Metadata.Limit())
	s.tooLong(doc.Metadata.Limit())
	return s, violations, err
}

func interfaceAddresses(name string) ([]netip.Addr, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	networks, err := i.Addrs()
	var all []netip.Addr
	for _, n := range networks {
		if prefix, err := netip.ParsePrefix(n.String()); err == nil {
			all = append(all, prefix.Addr())
		}
	}
	return all, err
}

func resolve(m sdk.Machine, spec v1alpha1.KubernetesNodeSpec, addresses func(string) ([]netip.Addr, error)) (Settings, []sdk.Violation, error) {
	r := resolver{m: m, spec: spec, addresses: addresses, violations: document.Refused(spec)}
	r.result.Windows, r.result.WorkDir = m.Target.OS == "windows", "/run/machineadm-kubernetes-node"
	if r.result.Windows {
		r.result.WorkDir = `C:\ProgramData\machineadm-kubernetes-node`
	}
	r.provider()
	r.role()
	r.cluster("spec.cluster", spec.Cluster)
	r.node("spec.node", spec.Node)
	r.overlaps()
	r.discovery("spec.discovery", spec.Discovery)
	r.certificates("spec.certificates", spec.Certificates)
	r.etcd("spec.etcd", spec.Etcd)
	r.components()
	r.configurations()
	r.patches()
	r.kubeadm()
	r.profiles() // before the files, which have fields of their own
	r.kubeletFields()
	r.gates()
	r.commandLines()
	r.files()
	r.configFiles()
	r.effects()
	r.staticPods()
	r.result.Spec = r.spec
	if len(r.violations) > 0 {
		return Settings{}, r.violations, nil
	}
	if len(r.blocked) > 0 {
		return r.result, nil, sdk.Final(sdk.Preconditions(r.blocked...))
	}
	if r.err == nil && len(r.pending) > 0 {
		r.err = sdk.Preconditions(r.pending...)
	}
	return r.result, nil, r.err
}

func (r *resolver) provider() {
	config, violations := sdk.ProviderConfig[struct {
		// FeatureGates are kubeadm's own. A node that joins takes them from the cluster.
		FeatureGates map[string]bool `json:"featureGates"`
	}](r.spec.ProviderConfig)
	r.violations = append(r.violations, violations...)
	r.result.FeatureGates = config.FeatureGates
	var err error
	r.result.Version, err = release.Parse(r.spec.KubernetesVersion)
	if !r.invalid(err, "spec.kubernetesVersion", "write it like v1.37.1") {
		v := r.result.Version
		r.refuse(v.Major != 1 || v.Minor < release.Oldest-1 || v.Minor > release.Newest, "spec.kubernetesVersion",
			fmt.Sprintf("is not served by kubeadm 1.%d to 1.%d, which this plugin supports", release.Oldest, release.Newest),
			"use a version that they serve, or a plugin that supports its kubeadm")
	}
}

func (r *resolver) role() {
	role := r.spec.Role
	if !r.refuse(!slices.Contains([]string{Init, Join, Worker}, role), "spec.role", "is not a role", "use one of "+Init+", "+Join+", "+Worker) {
		r.refuse(r.result.Windows && role != Worker, "spec.role", "Windows has no control plane", "use "+Worker)
	}
}
