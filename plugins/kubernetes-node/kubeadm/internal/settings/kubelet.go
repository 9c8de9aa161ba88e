package settings

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// ClientCA reports whether the document names the file with which the kubelet authenticates its clients.
func (s Settings) ClientCA() bool {
	authentication, _ := s.Kubelet["authentication"].(map[string]any)
	x509, _ := authentication["x509"].(map[string]any)
	return x509["clientCAFile"] != nil || lastArgument(s.Spec.Node.KubeletArgs, "client-ca-file") >= 0 ||
		slices.ContainsFunc(s.Spec.Patches, func(p v1alpha1.ComponentPatch) bool {
			return p.Target == "kubeletconfiguration" && strings.Contains(p.Patch, "clientCAFile")
		})
}

// FailSwapOn reports whether the kubelet ends with an error where swap is on, nil if the configuration that the cluster has for all
// nodes decides it.
func (s Settings) FailSwapOn() *bool {
	yes := true
	if i := lastArgument(s.Spec.Node.KubeletArgs, "fail-swap-on"); i >= 0 {
		if fail, err := strconv.ParseBool(s.Spec.Node.KubeletArgs[i].Value); err == nil {
			return &fail
		}
	}
	value, set := s.KubeletField("failSwapOn")
	switch {
	case set:
		if fail, ok := value.(bool); ok {
			return &fail
		}
		return &yes // null restores the default
	case s.Spec.Role == Init:
		return &yes
	case s.Cluster != nil:
		return &s.Cluster.FailSwapOn
	}
	return nil
}

// KubeletField returns what the document says of a field of KubeletConfiguration, and whether it says anything. Patches precede the fields.
func (s Settings) KubeletField(name string) (value any, set bool) {
	value, set = s.Kubelet[name]
	for _, p := range s.Spec.Patches {
		if p.Target != "kubeletconfiguration" {
			continue
		}
		if patched, ok := objectOf([]byte(p.Patch))[name]; ok {
			value, set = patched, true
		}
		var operations []struct {
			Path  string `json:"path"`
			Value any    `json:"value"`
		}
		if json.Unmarshal([]byte(p.Patch), &operations) == nil {
			for _, o := range operations {
				if o.Path == "/"+name {
					value, set = o.Value, true
				}
			}
		}
	}
	return value, set
}
