// Package render writes the configuration that kubeadm reads. Source: kubeadm's API types v1beta3 and v1beta4, and its
// package util/patches.
package render

import (
	"bytes"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/release"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// Render returns what this release of kubeadm reads, or what it cannot express: another release may, so that this is
// Unsupported.
func Render(s settings.Settings, kubeadm release.Version) (Rendered, []sdk.Violation) {
	r := renderer{s: s, kubeadm: kubeadm, legacy: kubeadm.Minor < 31}
	if !kubeadm.Supported() {
		return Rendered{}, release.Check(s.Version, kubeadm, kubeadm)
	}
	r.unsupported()
	r.patches()
	var documents []any
	if s.Spec.Role == settings.Init {
		documents = append(documents, r.init(), r.cluster())
		documents = r.component(documents, "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration", s.Kubelet)
		documents = r.component(documents, "kubeproxy.config.k8s.io/v1alpha1", "KubeProxyConfiguration", s.KubeProxy)
	} else {
		documents = append(documents, r.join())
	}
	if len(r.violations) > 0 {
		return Rendered{}, r.violations
	}
	var config bytes.Buffer
	if err := document.Encode(&config, documents...); err != nil {
		return Rendered{}, []sdk.Violation{{Field: "spec", Message: err.Error()}} // it names the field and quotes no value
	}
	r.result.Config = config.Bytes()
	return r.result, nil
}

func (r *renderer) component(documents []any, apiVersion, kind string, fields map[string]any) []any {
	if len(fields) == 0 {
		return documents
	}
	o := object{"apiVersion": apiVersion, "kind": kind}
	for name, value := range fields {
		o[name] = value
	}
	return append(documents, o)
}
