package v1alpha1

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// provider sets what no field of a document does.
const provider = "the provider"

// Elsewhere returns the fields of KubeletConfiguration that config must not have, with what sets them.
func (k Kubelet) Elsewhere() map[string]string {
	return elsewhere(k, "spec.kubelet.", map[string]string{
		"containerRuntimeEndpoint": "spec.node.criSocket", "providerID": "spec.node.providerID",
		"registerNode": "spec.node.register", "registerWithTaints": "spec.node.taints",
	})
}

// Elsewhere returns the fields of KubeProxyConfiguration that config must not have, with what sets them.
func (p KubeProxy) Elsewhere() map[string]string {
	return elsewhere(p, "spec.kubeProxy.", map[string]string{})
}

// elsewhere adds the fields of a struct beside config.
func elsewhere(of any, at string, all map[string]string) map[string]string {
	all["apiVersion"], all["kind"] = provider, provider
	for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "config" {
			all[name] = at + name
		}
	}
	return all
}

// argumentsElsewhere are the arguments of the kubelet that kubeletArgs must not have, with what sets them.
func argumentsElsewhere() map[string]string {
	return map[string]string{
		"cloud-provider": "spec.node.cloudProvider", "container-runtime-endpoint": "spec.node.criSocket", "hostname-override": "spec.node.name",
		"node-ip": "spec.node.ip", "node-labels": "spec.node.labels", "provider-id": "spec.node.providerID", "register-node": "spec.node.register",
		"register-with-taints": "spec.node.taints", "config": provider, "kubeconfig": provider, "bootstrap-kubeconfig": provider,
	}
}

// Refused returns the parts of the document that no node accepts.
func (s KubernetesNodeSpec) Refused() (all []Refusal) {
	set := func(by string, path ...any) {
		hint := "move it there"
		switch by {
		case "":
			return
		case provider:
			hint = "remove it"
		case "spec.node.ip":
			hint += "; if the API server has another address, set spec.node.advertiseAddress"
		}
		all = append(all, Refusal{append([]any{"spec"}, path...), "is set by " + by, hint})
	}
	for i, a := range s.Node.KubeletArgs {
		set(argumentsElsewhere()[a.Name], "node", "kubeletArgs", i, "name")
	}
	config := func(part string, config json.RawMessage, elsewhere map[string]string) {
		var fields map[string]json.RawMessage
		if len(config) > 0 && (json.Unmarshal(config, &fields) != nil || fields == nil) {
			all = append(all, Refusal{[]any{"spec", part, "config"}, "must be a mapping", "write fields by their names"})
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			set(elsewhere[name], part, "config", name)
		}
	}
	if k := s.Kubelet; k != nil {
		config("kubelet", k.Config, k.Elsewhere())
	}
	if p := s.KubeProxy; p != nil {
		config("kubeProxy", p.Config, p.Elsewhere())
	}
	return all
}
