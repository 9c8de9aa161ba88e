package settings

import (
	"cmp"
	"time"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// longest is the longest timeout that the document does not have. kubeadm waits for the control plane as long, but only a minute for
// the answer to a request, which is too short for an API server that starts on a busy machine.
const longest = 4 * time.Minute

// tooLong warns of timeouts that never pass, because the time limit of the document ends it first.
func (s *Settings) tooLong(limit time.Duration) {
	t := s.Spec.Timeouts
	if t == nil {
		return
	}
	for _, each := range []struct{ name, value string }{
		{"controlPlane", t.ControlPlane},
		{"kubelet", t.Kubelet},
		{"kubernetesAPI", t.KubernetesAPI},
		{"etcdAPI", t.EtcdAPI},
		{"tlsBootstrap", t.TLSBootstrap},
		{"discovery", t.Discovery},
	} {
		if d, err := time.ParseDuration(each.value); err == nil && d > limit {
			s.Warnings = append(s.Warnings, sdk.Warning{Field: "spec.timeouts." + each.name, Message: "is longer than metadata.timeout, by default 15m, which ends the document first: set that as well"})
		}
	}
}

// timeouts returns timeouts of kubeadm that pass before the time limit of the document, so that kubeadm can say for what it has
// waited. Those of the document and kubeadm's shorter ones stay.
func timeouts(t *v1alpha1.NodeTimeouts, limit time.Duration) v1alpha1.NodeTimeouts {
	var all v1alpha1.NodeTimeouts
	if t != nil {
		all = *t
	}
	each := min((limit / 3).Round(time.Second), longest)
	if each <= 0 {
		return all
	}
	all.KubernetesAPI = cmp.Or(all.KubernetesAPI, each.String())
	if each == longest {
		return all
	}
	for _, timeout := range []*string{&all.ControlPlane, &all.Kubelet, &all.TLSBootstrap, &all.Discovery} {
		*timeout = cmp.Or(*timeout, each.String())
	}
	return all
}
