package render

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
)

// patches are applied in the order of their names. What is of this node alone must not be in the configuration of the
// kubelet that kubeadm uploads for all nodes.
func (r *renderer) patches() {
	kubelet := object{}
	if r.s.Spec.Role != settings.Init {
		maps.Copy(kubelet, r.s.Kubelet)
	}
	kubelet.put("providerID", r.s.ProviderID)
	if register := r.s.Spec.Node.Register; register != nil {
		kubelet["registerNode"] = *register
	}
	if len(kubelet) > 0 {
		r.patch("kubeletconfiguration", "merge", kubelet)
	}
	for _, c := range settings.Components(r.s.Spec) {
		if c.Want != nil && c.Want.Image != "" {
			container := object{"name": c.Name, "image": c.Want.Image}
			r.patch(c.Name, "strategic", object{"spec": object{"containers": []object{container}}})
		}
	}
	for _, p := range r.s.Spec.Patches {
		r.patch(p.Target, p.Type, json.RawMessage(p.Patch))
	}
}

func (r *renderer) patch(target, how string, content any) {
	name := fmt.Sprintf("%s%04d+%s.json", target, len(r.result.Patches), how)
	data, err := json.Marshal(content)
	if err != nil { // of JSON values
		panic("kubernetes-node: " + name + " is not JSON")
	}
	r.result.Patches = append(r.result.Patches, Patch{Name: name, Content: append(data, '\n')})
}
