package settings

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/sdk"
)

// flagValue is what the document says of a flag of the kubelet, and in which field.
type flagValue struct{ value, field string }

// Overridden returns the settings of the document to which a command line of the kubelet, or its end, gives another value: the last flag of
// a name counts, and precedes the configuration file. The messages begin with the name of what has the command line, and quote no value.
func (s Settings) Overridden(command []string, origin string) []sdk.Violation {
	want, have := s.flags(), flagsIn(command)
	var all []sdk.Violation
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if w, ok := want[name]; ok && w.value != have[name] {
			all = append(all, overridden(w.field, origin+" gives the kubelet --"+name))
		}
	}
	return all
}

// OverriddenBy returns the settings of the document to which a file in the configuration directory of the kubelet gives another value.
func (s Settings) OverriddenBy(fields map[string]any, file string) []sdk.Violation {
	var all []sdk.Violation
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if value, ok := s.Kubelet[name]; ok && fmt.Sprint(value) != fmt.Sprint(fields[name]) {
			all = append(all, overridden("spec.kubelet", file+" gives the kubelet "+name))
		}
	}
	return all
}

func overridden(field, what string) sdk.Violation {
	return sdk.Violation{Field: field, Message: what + " with another value than the document, and that is in force", Hint: "remove one of the two"}
}

// flags are the settings of the document that a flag of the kubelet can override.
func (s Settings) flags() map[string]flagValue {
	all := map[string]flagValue{}
	for name, value := range s.Kubelet {
		if text, ok := flagText(value); ok {
			all[flagName(name)] = flagValue{text, "spec.kubelet"}
		}
	}
	node := s.Spec.Node
	for i, a := range node.KubeletArgs {
		all[a.Name] = flagValue{a.Value, fmt.Sprintf("spec.node.kubeletArgs[%d]", i)}
	}
	var ips []string
	for _, ip := range s.NodeIPs {
		ips = append(ips, ip.String())
	}
	set := func(name, value, field string) {
		if value != "" {
			all[name] = flagValue{value, "spec.node." + field}
		}
	}
	set("node-ip", strings.Join(ips, ","), "ip")
	set("hostname-override", s.NodeName, "name")
	set("provider-id", s.ProviderID, "providerID")
	set("cloud-provider", node.CloudProvider, "cloudProvider")
	set("container-runtime-endpoint", node.CRISocket, "criSocket")
	if node.Register != nil {
		set("register-node", fmt.Sprint(*node.Register), "register")
	}
	if len(node.Labels) > 0 {
		set("node-labels", joined(node.Labels), "labels")
	}
	return all
}

// flagName is the flag of a field of KubeletConfiguration: max-pods for maxPods, image-gc-high-threshold for imageGCHighThresholdPercent.
func flagName(field string) string {
	if name := map[string]string{
		"eventRecordQPS": "event-qps", "imageMinimumGCAge": "minimum-image-ttl-duration", "kubeAPIQPS": "kube-api-qps", "podPidsLimit": "pod-max-pids", "registryPullQPS": "registry-qps", "reservedSystemCPUs": "reserved-cpus",
		"serverTLSBootstrap": "rotate-server-certificates",
	}[field]; name != "" {
		return name
	}
	words := regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`).ReplaceAllString(strings.TrimSuffix(field, "Percent"), "$1$3-$2$4")
	return strings.ToLower(words)
}

// flagText is a value of a field as its flag has it. Lists and mappings within others have flags of other names.
func flagText(value any) (string, bool) {
	switch value := value.(type) {
	case nil, []any:
		return "", false
	case map[string]any:
		pairs := map[string]string{}
		for name, inner := range value {
			text, ok := inner.(string)
			if !ok {
				return "", false
			}
			pairs[name] = text
		}
		return joined(pairs), true
	}
	return fmt.Sprint(value), true
}

func joined(pairs map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		all = append(all, name+"="+pairs[name])
	}
	return strings.Join(all, ",")
}

// flagsIn returns the last value of each flag of a command line. A mapping has its keys in order, and a threshold an equals sign.
func flagsIn(command []string) map[string]string {
	all := map[string]string{}
	for i, word := range command {
		name, ok := strings.CutPrefix(word, "--")
		if !ok {
			continue
		}
		name, value, given := strings.Cut(name, "=")
		switch {
		case given:
		case i+1 < len(command) && !strings.HasPrefix(command[i+1], "-"):
			value = command[i+1]
		default:
			value = "true"
		}
		if strings.ContainsAny(value, "=<") {
			parts := strings.Split(strings.ReplaceAll(value, "<", "="), ",")
			slices.Sort(parts)
			value = strings.Join(parts, ",")
		}
		all[name] = value
	}
	return all
}

// ConfigDirectory returns the directory of further files of configuration that a command line of the kubelet names, or "".
func ConfigDirectory(command []string) string { return flagsIn(command)["config-dir"] }
