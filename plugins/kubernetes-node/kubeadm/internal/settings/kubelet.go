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
// nodes decides it. An argument precedes the patches, which precede the fields.
func (s Settings) FailSwapOn() *bool {
	yes := true
	var result *bool
	switch {
	case s.Spec.Role == Init:
		result = &yes // the default of the kubelet
	case s.Cluster != nil:
		result = &s.Cluster.FailSwapOn
	}
	set := func(value any) {
		result = &yes // null restores the default
		if fail, ok := value.(bool); ok {
			result = &fail
		}
	}
	if value, ok := s.Kubelet["failSwapOn"]; ok {
		set(value)
	}
	for _, p := range s.Spec.Patches {
		if p.Target != "kubeletconfiguration" {
			continue
		}
		if value, ok := objectOf([]byte(p.Patch))["failSwapOn"]; ok {
			set(value)
		}
		var operations []struct {
			Path  string `json:"path"`
			Value any    `json:"value"`
		}
		if json.Unmarshal([]byte(p.Patch), &operations) == nil {
			for _, o := range operations {
				if o.Path == "/failSwapOn" {
					set(o.Value)
				}
			}
		}
	}
	if i := lastArgument(s.Spec.Node.KubeletArgs, "fail-swap-on"); i >= 0 {
		if fail, err := strconv.ParseBool(s.Spec.Node.KubeletArgs[i].Value); err == nil {
			result = &fail
		}
	}
	return result
}
