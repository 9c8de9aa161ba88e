package settings

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// Rule is a rule of a profile.
type Rule struct {
	v1alpha1.KubernetesNodeRule
	// Profile is the profile of the rule.
	Profile string
}

// rulesOf returns the rules of profiles.
func rulesOf(profiles []string) (rules []Rule) {
	if len(profiles) == 0 {
		return nil
	}
	all := v1alpha1.KubernetesNodeProfiles()
	for _, name := range profiles {
		for _, rule := range all[name] {
			rules = append(rules, Rule{rule, name})
		}
	}
	return rules
}

// WithHostName reports whether a profile demands that the node has the name of the host.
func (s Settings) WithHostName() bool {
	return slices.ContainsFunc(rulesOf(s.Spec.Profiles), func(r Rule) bool { return r.Target == "host name" })
}

// profiles adds the settings of the profiles to the document's and refuses what contradicts them. The arguments of
// the control plane belong to the whole cluster, so that only controlPlaneInit sets them.
func (r *resolver) profiles() {
	known := map[string]document.Path{}
	for i, name := range r.spec.Profiles {
		at := document.Path("spec.profiles").Index(i)
		r.unique(at, known, name)
	}
	for _, rule := range rulesOf(r.spec.Profiles) {
		switch rule.Target {
		case "kubelet":
			if rule.Value != "null" || r.spec.Role == Worker {
				r.kubeletRule(rule)
			}
		case "kubeProxy":
			if r.spec.Role == Init && (r.spec.KubeProxy == nil || !r.spec.KubeProxy.Skip) {
				r.field(rule, "spec.kubeProxy.config", r.result.KubeProxy)
			}
		case "file":
			if bits, err := strconv.ParseUint(rule.Value, 8, 12); err == nil && !r.result.Windows {
				r.result.Modes = append(r.result.Modes, Mode{Path: rule.Name, Mode: fs.FileMode(bits)})
			}
		case "apiServer", "controllerManager", "scheduler", "etcd":
			if r.spec.Role == Init {
				r.argumentRule(rule)
			}
		}
	}
}

// contradiction refuses a setting of the document other than the rule's.
func (r *resolver) contradiction(bad bool, field document.Path, rule Rule) {
	r.refuse(bad, field, "contradicts "+rule.ID+" of the profile "+rule.Profile, "remove it or the profile: the rule asks for "+rule.Name+" = "+rule.Value)
}

// argumentRule adds an argument to a component, unless the document has it.
func (r *resolver) argumentRule(rule Rule) {
	at := document.Path("spec").Field(rule.Target)
	var args *[]v1alpha1.Argument
	switch rule.Target {
	case "etcd":
		at += ".local"
		if r.spec.Etcd != nil && r.spec.Etcd.External != nil {
			return
		}
		local := v1alpha1.LocalEtcd{}
		if r.spec.Etcd != nil && r.spec.Etcd.Local != nil {
			local = *r.spec.Etcd.Local
		}
		r.spec.Etcd, args = &v1alpha1.Etcd{Local: &local}, &local.Args
	default:
		component := v1alpha1.ControlPlaneComponent{}
		into := map[string]**v1alpha1.ControlPlaneComponent{
			"apiServer": &r.spec.APIServer, "controllerManager": &r.spec.ControllerManager, "scheduler": &r.spec.Scheduler,
		}[rule.Target]
		if *into != nil {
			component = **into
		}
		*into, args = &component, &component.Args
	}
	found := false
	for i, a := range *args {
		if a.Name == rule.Name {
			found = true
			r.contradiction(a.Value != rule.Value && !slices.Contains(rule.Others, a.Value), (at + ".args").Index(i), rule)
		}
	}
	if !found {
		*args = append(slices.Clip(*args), v1alpha1.Argument{Name: rule.Name, Value: rule.Value})
	}
}

// kubeletRule sets a field, and refuses the argument and the patches of the document that would override it.
func (r *resolver) kubeletRule(rule Rule) {
	for i, a := range r.spec.Node.KubeletArgs {
		r.contradiction(a.Name == rule.Flag, document.Path("spec.node.kubeletArgs").Index(i), rule)
	}
	top, _, _ := strings.Cut(rule.Name, ".")
	for i, p := range r.spec.Patches {
		names := strings.Contains(p.Patch, `"`+top+`"`) || strings.Contains(p.Patch, `"/`+top)
		r.contradiction(p.Target == "kubeletconfiguration" && names, document.Path("spec.patches").Index(i)+".patch", rule)
	}
	r.field(rule, document.Path(strings.TrimSuffix(string(kubeletField(top)), "."+top)), r.result.Kubelet)
}

// field sets a field of a configuration, unless the document has it.
func (r *resolver) field(rule Rule, at document.Path, object map[string]any) {
	steps := strings.Split(rule.Name, ".")
	for i, step := range steps {
		at = at.Field(step)
		value, there := object[step]
		switch {
		case i < len(steps)-1 && !there:
			object[step] = map[string]any{}
		case i < len(steps)-1:
		case there:
			data, err := json.Marshal(value)
			r.contradiction(err != nil || string(data) != rule.Value && !slices.Contains(rule.Others, string(data)), at, rule)
			return
		default:
			object[step] = valueOfJSON(rule.Value)
			return
		}
		inner, ok := object[step].(map[string]any)
		if !ok {
			r.contradiction(true, at, rule)
			return
		}
		object = inner
	}
}

func valueOfJSON(text string) any { return objectOf([]byte(`{"value":` + text + `}`))["value"] }
