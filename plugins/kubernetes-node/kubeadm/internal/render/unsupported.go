package render

import (
	"fmt"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// setting is a field that kubeadm supports from a minor version on.
type setting struct {
	field document.Path
	given bool
	since int
}

// unsupported refuses what this release of kubeadm cannot express.
func (r *renderer) unsupported() {
	spec := r.s.Spec
	algorithm := map[string]int{"RSA-3072": 31, "RSA-4096": 31, "ECDSA-P384": 34}[spec.Cluster.KeyAlgorithm]
	all := []setting{
		{"spec.cluster.keyAlgorithm", true, algorithm},
		{"spec.cluster.certificateValidity", spec.Cluster.CertificateValidity != "", 31},
		{"spec.cluster.caCertificateValidity", spec.Cluster.CACertificateValidity != "", 31},
	}
	if t := spec.Timeouts; t != nil {
		joins := spec.Role != settings.Init
		all = append(all,
			setting{"spec.timeouts.controlPlane", t.ControlPlane != "" && joins, 31}, // v1beta3 has it for the cluster
			setting{"spec.timeouts.kubelet", t.Kubelet != "", 31},
			setting{"spec.timeouts.kubernetesAPI", t.KubernetesAPI != "", 31},
			setting{"spec.timeouts.etcdAPI", t.EtcdAPI != "", 31},
			setting{"spec.timeouts.tlsBootstrap", t.TLSBootstrap != "", 31},
			setting{"spec.timeouts.discovery", t.Discovery != "" && !joins, 31}, // v1beta3 has it for joins
		)
	}
	for _, c := range settings.Components(spec) {
		if c.Want != nil {
			at := document.Path("spec").Field(c.Field)
			all = append(append(all, setting{at + ".env", len(c.Want.Env) > 0, 31}), repeated(at+".args", c.Want.Args)...)
		}
	}
	if spec.Etcd != nil && spec.Etcd.Local != nil {
		const at = document.Path("spec.etcd.local")
		all = append(append(all, setting{at + ".env", len(spec.Etcd.Local.Env) > 0, 31}), repeated(at+".args", spec.Etcd.Local.Args)...)
	}
	all = append(all, repeated("spec.node.kubeletArgs", spec.Node.KubeletArgs)...)
	for i, p := range spec.Patches {
		since := map[string]int{"corednsdeployment": 31, "kubeproxydaemonset": 37}[p.Target]
		all = append(all, setting{document.Path("spec.patches").Index(i) + ".target", true, since})
	}
	if spec.Role == settings.Init {
		r.violations = append(r.violations, r.s.KubeadmGates(r.kubeadm.Minor)...)
	}
	for _, f := range all {
		if f.given && f.since > r.kubeadm.Minor {
			r.violations = append(r.violations, sdk.Violation{
				Field: string(f.field), Message: fmt.Sprintf("kubeadm %s cannot express this value; 1.%d and later can", r.kubeadm, f.since),
				Hint: "remove it, or install another release of kubeadm",
			})
		}
	}
}

// repeated returns the arguments whose name is there twice.
func repeated(at document.Path, args []v1alpha1.Argument) []setting {
	var all []setting
	seen := map[string]bool{}
	for i, a := range args {
		all = append(all, setting{at.Index(i), seen[a.Name], 31})
		seen[a.Name] = true
	}
	return all
}
