package settings

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/release"
)

// withFlags returns the fields of the kubelet's configuration with those that arguments of the document set, which precede them, and the
// places of these arguments.
func (r *resolver) withFlags() (map[string]any, map[string]document.Path) {
	fields, at := maps.Clone(r.result.Kubelet), map[string]document.Path{}
	for name, s := range schemaOf("KubeletConfiguration").inside {
		i := lastArgument(r.spec.Node.KubeletArgs, flagName(name))
		if i < 0 {
			continue
		}
		if set, ok := flagText(fields[name]); ok && set != r.spec.Node.KubeletArgs[i].Value {
			r.refuse(true, document.Path("spec.node.kubeletArgs").Index(i)+".value", "contradicts "+string(kubeletField(name))+", over which an argument wins", "remove one of the two")
		}
		if value := s.fromFlag(r.spec.Node.KubeletArgs[i].Value); value != nil {
			fields[name], at[name] = value, document.Path("spec.node.kubeletArgs").Index(i)+".value"
		}
	}
	return fields, at
}

// kubeletField is where a document has a field of KubeletConfiguration.
func kubeletField(name string) document.Path {
	if at := (v1alpha1.Kubelet{}).Elsewhere()[name]; at != "" {
		return document.Path(at)
	}
	return document.Path("spec.kubelet.config").Field(name)
}

// flagFault says why a kubelet does not start with the value of an argument that is a field of its configuration as well, or does without it.
func flagFault(name, text string) (message, hint string) {
	found := func(_ document.Path, m, h string) { message, hint = m, h }
	for field, s := range schemaOf("KubeletConfiguration").inside {
		if value := s.fromFlag(text); value != nil && flagName(field) == name && field != "featureGates" {
			inspection{kind: "KubeletConfiguration", minor: release.Newest, found: found, check: checkKubelet}.visit(s, field, "", value)
		}
	}
	return message, hint
}

// fromFlag returns the value of a flag in the form of its field, nil for a form that is not known.
func (s *schema) fromFlag(text string) any {
	switch {
	case s.inside["{}"] != nil:
		object := map[string]any{}
		for pair := range strings.SplitSeq(text, ",") {
			name, value, _ := strings.Cut(strings.Replace(pair, "<", "=", 1), "=") // thresholds have <
			object[name] = value
		}
		return object
	case s.inside["[]"] != nil && s.inside["[]"].inside["numaNode"] != nil:
		return reservedMemory(text)
	case s.inside["[]"] != nil:
		var list []any
		for item := range strings.SplitSeq(text, ",") {
			list = append(list, item)
		}
		return list
	case s.what == "bool":
		if on, err := strconv.ParseBool(text); err == nil {
			return on
		}
	case strings.Contains(s.what, "int"):
		return json.Number(text)
	case s.what == "string" || s.what == "duration":
		return text
	}
	return nil
}

// reservedMemory returns the value of a flag of the form NODE:RESOURCE=QUANTITY,...;NODE:... in the form of its field, nil for another one.
func reservedMemory(text string) any {
	var list []any
	for entry := range strings.SplitSeq(text, ";") {
		node, resources, ok := strings.Cut(entry, ":")
		limits := map[string]any{}
		for pair := range strings.SplitSeq(resources, ",") {
			name, value, _ := strings.Cut(pair, "=")
			limits[name] = value
		}
		if _, err := strconv.Atoi(node); !ok || err != nil {
			return nil
		}
		list = append(list, map[string]any{"numaNode": json.Number(node), "limits": limits})
	}
	return list
}
