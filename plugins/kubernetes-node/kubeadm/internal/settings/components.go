package settings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/form"
	"github.com/machineadm/machineadm/sdk"
)

// Component is a component of the control plane: its field in the spec, the name of its static pod, and what the document
// says of it, nil for nothing.
type Component struct {
	Field, Name string
	Want        *v1alpha1.ControlPlaneComponent
}

// Components returns the components of a spec.
func Components(spec v1alpha1.KubernetesNodeSpec) []Component {
	return []Component{
		{"apiServer", "kube-apiserver", spec.APIServer},
		{"controllerManager", "kube-controller-manager", spec.ControllerManager},
		{"scheduler", "kube-scheduler", spec.Scheduler},
	}
}

func (r *resolver) components() {
	for _, c := range Components(r.spec) {
		if c.Want == nil {
			continue
		}
		at := document.Path("spec").Field(c.Field)
		r.arguments(at+".args", c.Want.Args)
		r.environment(at+".env", c.Want.Env)
		r.modes(at+".args", c)
		if i := lastArgument(c.Want.Args, "advertise-address"); i >= 0 && c.Field == "apiServer" {
			r.result.Warnings = append(r.result.Warnings, sdk.Warning{
				Field:   string((at + ".args").Index(i)) + ".name",
				Message: "gives every control plane this address, and kubeadm and etcd use another one: set spec.node.advertiseAddress instead",
			})
		}
		r.matches(at+".image", c.Want.Image, image, "is not the reference of an image", "write it like registry.example.com/kube-apiserver:v1.37.1")
		names, mounts := map[string]document.Path{}, r.mountsOf(c.Name)
		for i, v := range c.Want.Volumes {
			field := (at + ".volumes").Index(i)
			r.refuse(!label().MatchString(v.Name), field+".name", "is not a DNS label", "use at most 63 lower-case letters, digits and -")
			r.unique(field+".name", names, v.Name)
			r.path(field+".hostPath", v.HostPath)
			if v.MountPath != "" {
				r.path(field+".mountPath", v.MountPath)
			}
			r.refuse(strings.Contains(cmp.Or(v.MountPath, v.HostPath), ":"), field, "is mounted at a path with a colon, which the kubelet does not take", "set a mountPath without one")
			r.mount(field, v, mounts, r.mountsOf(c.Name))
		}
		r.componentTraps(at, c.Name, c.Want)
		r.removed(at+".args", c.Name, c.Want.Args)
	}
}

// mountsOf returns the paths at which kubeadm always mounts something in a component, and the names of these volumes. A volume of the document
// with the same name replaces kubeadm's. Source: app/phases/controlplane/volumes.go.
func (r *resolver) mountsOf(component string) map[string]string {
	if component == "kube-scheduler" {
		return map[string]string{"/etc/kubernetes/scheduler.conf": "kubeconfig"}
	}
	mounts := map[string]string{cmp.Or(r.spec.Cluster.CertificatesDir, "/etc/kubernetes/pki"): "k8s-certs", "/etc/ssl/certs": "ca-certs"}
	if component == "kube-controller-manager" {
		mounts["/etc/kubernetes/controller-manager.conf"] = "kubeconfig"
	}
	return mounts
}

// mount refuses a path at which something is mounted already, and a volume in the place of one of kubeadm's that the component reads its
// certificates from. It adds the path to the mounts.
func (r *resolver) mount(field document.Path, v v1alpha1.HostVolume, mounts, own map[string]string) {
	at := field + ".hostPath"
	where := v.HostPath
	for file, name := range own {
		r.refuse(name == v.Name && name != "ca-certs" && v.HostPath != file, field+".name", "is the name of the volume that kubeadm makes of "+file+
			", which the component then does not have", "give it another name")
	}
	if v.MountPath != "" {
		at, where = field+".mountPath", v.MountPath
	}
	name, taken := mounts[where]
	r.refuse(taken && name != v.Name, at, "is where the volume "+name+" is mounted, and the kubelet refuses a pod with two of them", "remove one of the two, or use another path")
	mounts[where] = v.Name
}

// modes refuses an authorization mode that kubeadm does not know and ignores: its getAuthzModes.
func (r *resolver) modes(at document.Path, c Component) {
	known := []string{"Node", "RBAC", "Webhook", "ABAC", "AlwaysAllow", "AlwaysDeny"}
	i := lastArgument(c.Want.Args, "authorization-mode")
	if c.Field != "apiServer" || i < 0 {
		return
	}
	for mode := range strings.SplitSeq(c.Want.Args[i].Value, ",") {
		r.oneOf(at.Index(i)+".value", mode, known...)
	}
}

func (r *resolver) arguments(at document.Path, all []v1alpha1.Argument) {
	for i, a := range all {
		r.refuse(!argumentName().MatchString(a.Name), at.Index(i)+".name", "is not the name of an argument", "write it without leading dashes")
		r.refuse(form.HasControl(a.Value), at.Index(i)+".value", "has control characters", "")
	}
}

func (r *resolver) environment(at document.Path, all []v1alpha1.EnvironmentVariable) {
	names := map[string]document.Path{}
	for i, v := range all {
		r.refuse(!variable().MatchString(v.Name), at.Index(i)+".name", "is not the name of a variable", "use letters, digits and _")
		if r.refuse(form.HasControl(v.Value), at.Index(i)+".value", "has control characters", ""); strings.TrimSpace(v.Value) != v.Value {
			r.warn(at.Index(i)+".value", "begins or ends with a blank, which becomes a part of the value: remove it")
		}
		r.unique(at.Index(i)+".name", names, v.Name)
	}
}

// configurations merges the fields of the kubelet and of kube-proxy with their free fields.
func (r *resolver) configurations() {
	r.result.Kubelet, r.result.KubeProxy = map[string]any{}, map[string]any{}
	if k := r.spec.Kubelet; k != nil {
		const at = document.Path("spec.kubelet")
		resources := []string{"cpu", "memory", "ephemeral-storage", "pid"}
		r.quantities(at+".systemReserved", k.SystemReserved, quantity().MatchString, "500Mi or 250m", resources...)
		r.quantities(at+".kubeReserved", k.KubeReserved, quantity().MatchString, "500Mi or 250m", resources...)
		r.quantities(at+".evictionHard", k.EvictionHard, isThreshold, "5% or 100Mi", signals()...)
		own := *k
		own.Config = nil
		merge(r.result.Kubelet, own, k.Config)
	}
	if p := r.spec.KubeProxy; p != nil {
		const at = document.Path("spec.kubeProxy")
		merge(r.result.KubeProxy, v1alpha1.KubeProxy{Mode: p.Mode}, p.Config)
		r.proxyTraps(at)
	}
}

// merge adds the JSON fields of own and the free fields to one object.
func merge(into map[string]any, own any, free json.RawMessage) {
	data, err := json.Marshal(own) // strings, numbers and booleans
	if err == nil {
		maps.Copy(into, objectOf(data))
	}
	maps.Copy(into, objectOf(free))
}

func (r *resolver) quantities(at document.Path, all map[string]string, valid func(string) bool, example string, known ...string) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		r.oneOf(at.Key(key), key, known...)
		if r.refuse(!valid(all[key]), at.Key(key), "is not a quantity of this field", "write it like "+example); key != "cpu" && strings.HasSuffix(all[key], "m") {
			r.warn(at.Key(key), "is in thousandths of a byte: write Mi for 1024 x 1024 bytes, M for a million")
		}
	}
}

// objectOf returns the fields of a JSON object, or nil.
func objectOf(data []byte) map[string]any {
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if decoder.Decode(&object) != nil {
		return nil
	}
	return object
}
