package v1alpha1

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
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

// nodeRules collects what is wrong with a KubernetesNode.
type nodeRules struct{ all []Refusal }

func (r *nodeRules) refuse(bad bool, message, hint string, path ...any) {
	if bad {
		r.all = append(r.all, Refusal{append([]any{"spec"}, path...), message, hint})
	}
}

// Refused returns the parts of the document that no node accepts.
func (s KubernetesNodeSpec) Refused() []Refusal {
	const either = "remove one of the two"
	var r nodeRules
	r.roles(s)
	r.refuse(s.IgnoreAllPreflightErrors && len(s.IgnorePreflightErrors) > 0, "means nothing while spec.ignoreAllPreflightErrors is true", either, "ignorePreflightErrors")
	if d := s.Discovery; d != nil {
		r.refuse(d.Kubeconfig != nil && (d.Token != nil || len(d.CACertHashes) > 0 || d.Endpoint != ""), "excludes the other fields of spec.discovery", either, "discovery", "kubeconfig")
		joins := s.Role == ControlPlaneJoin || s.Role == Worker
		r.refuse(joins && d.Token != nil && d.Kubeconfig == nil && len(d.CACertHashes) == 0, "is required with a token: without it any server could claim to be the cluster",
			"kubeadm token create --print-join-command prints it", "discovery", "caCertHashes")
	}
	if e := s.Etcd; e != nil {
		r.refuse((e.Local == nil) == (e.External == nil), "must have exactly one of local and external", "", "etcd")
		x := e.External
		r.refuse(x != nil && (x.Cert == "") != (x.Key == nil), "belongs to cert, and one of the two is absent", "give both, or none", "etcd", "external", "key")
	}
	for i, f := range s.Files {
		r.refuse((f.Content == nil) == (f.SecretContent == nil), "must have exactly one of content and secretContent", "", "files", i)
		bits, err := ParseMode(f.Mode)
		r.refuse(f.SecretContent != nil && err == nil && bits&0o003 != 0, "lets every user of the machine change or run a secret", `use "0600" or "0640"`, "files", i, "mode")
	}
	r.registration(s.Node)
	if k := s.Kubelet; k != nil {
		r.config("kubelet", k.Config, k.Elsewhere())
	}
	if p := s.KubeProxy; p != nil {
		r.refuse(p.Skip && (p.Mode != "" || len(p.Config) > 0), "excludes the other fields of spec.kubeProxy", either, "kubeProxy", "skip")
		r.config("kubeProxy", p.Config, p.Elsewhere())
	}
	return r.all
}

// roles refuses fields that mean nothing for the role.
func (r *nodeRules) roles(s KubernetesNodeSpec) {
	if !slices.Contains([]string{ControlPlaneInit, ControlPlaneJoin, Worker}, s.Role) {
		return
	}
	for _, f := range s.Misplaced() {
		var path []any
		for step := range strings.SplitSeq(f.Field, ".") {
			name, index, item := strings.Cut(strings.TrimSuffix(step, "]"), "[")
			if path = append(path, name); item {
				i, _ := strconv.Atoi(index) // of Misplaced
				path = append(path, i)
			}
		}
		r.refuse(true, "is for the role "+strings.Join(f.Roles, " or ")+" only", "remove it: such a node takes it from the cluster, or has no use for it", path[1:]...)
	}
}

func (r *nodeRules) registration(n KubernetesNodeRegistration) {
	for _, v := range []struct {
		name  string
		given bool
		from  *MachineValue
	}{
		{"name", n.Name != "", n.NameFrom},
		{"ip", n.IP != "", n.IPFrom},
		{"advertiseAddress", n.AdvertiseAddress != "", n.AdvertiseAddressFrom},
		{"providerID", n.ProviderID != "", n.ProviderIDFrom},
	} {
		if v.from == nil {
			continue
		}
		r.refuse(v.given, "is given as well as spec.node."+v.name, "remove one of the two", "node", v.name+"From")
		source, value := "hostname", v.from.Hostname
		if v.name == "ip" || v.name == "advertiseAddress" {
			source, value = "interface", v.from.Interface
		}
		one := (value == "") != (v.from.File == "") && v.from.Hostname+v.from.Interface == value
		r.refuse(!one, "must have exactly one of "+source+" and file", "", "node", v.name+"From")
		r.from(*v.from, "node", v.name+"From")
	}
	for i, a := range n.KubeletArgs {
		r.set(argumentsElsewhere()[a.Name], "node", "kubeletArgs", i, "name")
	}
}

// from refuses what a value of the machine does not have beside its source.
func (r *nodeRules) from(v MachineValue, at ...any) {
	in := func(name string) []any { return append(slices.Clip(at), name) }
	r.refuse(strings.Contains(v.Family, ",") && at[1] != "ipFrom", "is two families, and the field is one address", "use ipv4 or ipv6", in("family")...)
	r.refuse(v.Family != "" && v.Interface == "", "is for interface only", "remove it", in("family")...)
	r.refuse(v.Key != "" && v.File == "", "is for file only", "remove it", in("key")...)
	r.refuse(v.JSONKeys != nil && v.File == "", "is for file only", "remove it", in("jsonKeys")...)
	r.refuse(v.JSONKeys != nil && v.Key != "", "is given as well as spec."+fieldOf(in("key")), "remove one of the two", in("jsonKeys")...)
	r.refuse(v.Prefix != "" && v.Interface != "", "an address has no prefix", "remove it", in("prefix")...)
}

// config refuses the fields of a configuration of Kubernetes that are elsewhere.
func (r *nodeRules) config(part string, config json.RawMessage, elsewhere map[string]string) {
	var fields map[string]json.RawMessage
	broken := len(config) > 0 && (json.Unmarshal(config, &fields) != nil || fields == nil)
	r.refuse(broken, "must be a mapping", "write fields by their names", part, "config")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		r.set(elsewhere[name], part, "config", name)
	}
}

// set refuses what something else sets, "" for nothing.
func (r *nodeRules) set(by string, path ...any) {
	hint := "move it there"
	switch by {
	case provider:
		hint = "remove it"
	case "spec.node.ip":
		hint += "; if the API server has another address, set spec.node.advertiseAddress"
	}
	r.refuse(by != "", "is set by "+by, hint, path...)
}
