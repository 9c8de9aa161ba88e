package settings

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/internal/lazyregexp"
)

// kubeletFields inspects spec.kubelet.config, and the patches of the kubelet's configuration.
func (r *resolver) kubeletFields() {
	minor := r.result.Version.Minor
	kubelets := func(at document.Path, name string, value bool) { r.gate(at, name, value, minor-kubeletsBack) }
	i := inspection{kind: "KubeletConfiguration", minor: minor, check: checkKubelet, found: r.found, gate: kubelets}
	s := schemaOf(i.kind)
	if r.spec.Kubelet != nil {
		i.visit(s, "", "spec.kubelet.config", objectValue(r.spec.Kubelet.Config))
	}
	for n, p := range r.spec.Patches {
		at := document.Path("spec.patches").Index(n) + ".patch"
		i.found = func(inner document.Path, message, hint string) { r.refuse(true, at, string(inner)+" "+message, hint) }
		i.gate = func(_ document.Path, name string, value bool) { kubelets(at, name, value) }
		var operations []operation
		switch {
		case p.Type == "json" && json.Unmarshal([]byte(p.Patch), &operations) == nil:
			r.operations(at, operations, p.Target, i)
		case p.Type != "json" && p.Target == "kubeletconfiguration":
			i.visit(s, "", "", objectValue([]byte(p.Patch)))
		}
	}
	if r.spec.KubeProxy != nil {
		i := inspection{
			kind: "KubeProxyConfiguration", minor: minor, found: r.found, check: checkProxy,
			gate: func(at document.Path, name string, value bool) { r.gate(at, name, value, minor) },
		}
		i.visit(schemaOf(i.kind), "", "spec.kubeProxy.config", objectValue(r.spec.KubeProxy.Config))
	}
	k, flags := r.withFlags()
	t := together{r, k, flags}
	t.fields()
	t.reserved()
	t.traps()
	t.effects()
}

func (r *resolver) found(at document.Path, message, hint string) { r.refuse(true, at, message, hint) }

// objectValue is nil for what is no object.
func objectValue(data []byte) any {
	if object := objectOf(data); object != nil {
		return object
	}
	return nil
}

// otherContainer is a path in a container that is not the first one.
var otherContainer = lazyregexp.New(`^/spec/containers/[1-9][0-9]*/`)

// operation is one of RFC 6902.
type operation struct {
	Op    string          `json:"op"`
	Path  *string         `json:"path"`
	Value json.RawMessage `json:"value"`
}

// operations inspects a patch of operations. One that kubeadm cannot apply ends it.
func (r *resolver) operations(at document.Path, all []operation, target string, i inspection) {
	patches := 0
	for _, p := range r.spec.Patches {
		if p.Target == target {
			patches++
		}
	}
	alone := patches == 1 && (strings.HasPrefix(target, "kube-") || target == "etcd") // each component of kubeadm has one container
	for n, o := range all {
		which := fmt.Sprintf("the operation %d ", n+1)
		if r.refuse(!slices.Contains([]string{"add", "remove", "replace", "move", "copy", "test"}, o.Op), at, which+"has no valid op", "use add, remove or replace") ||
			r.refuse(o.Path == nil || *o.Path != "" && !strings.HasPrefix(*o.Path, "/"), at, which+"has no path that begins with /", "write it like /metadata/labels/a") ||
			r.refuse(alone && otherContainer().MatchString(*o.Path), at, which+"names a container that the pod of "+target+" does not have", "write /spec/containers/0, which is the component") {
			continue
		}
		if inside, ok := strings.CutPrefix(*o.Path, "/spec/containers"); ok && strings.Count(inside, "/") < 2 {
			alone = false // it may add a container
		}
		if target != "kubeletconfiguration" || *o.Path == "" {
			continue
		}
		s, path := schemaOf(i.kind).descend(*o.Path)
		if r.refuse(s == nil, at, *o.Path+" is not a field of "+i.kind, "correct the path") || o.Op != "add" && o.Op != "replace" {
			continue
		}
		var value any
		d := json.NewDecoder(strings.NewReader(string(o.Value)))
		d.UseNumber()
		if d.Decode(&value) == nil {
			i.visit(s, path, document.Path(*o.Path), value)
		}
		if on, ok := value.(bool); ok && path == "featureGates{}" {
			i.gate("", strings.TrimPrefix(*o.Path, "/featureGates/"), on)
		}
	}
}
