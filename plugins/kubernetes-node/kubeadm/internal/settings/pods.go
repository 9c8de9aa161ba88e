package settings

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// This file checks static pods: the pods of spec.staticPods, and the pods of kubeadm that spec.patches changes.

// staticPod refuses a manifest of spec.staticPods that the kubelet refuses, and warns of one that waits for what is not there.
func (r *resolver) staticPod(at document.Path, pod map[string]any) {
	spec, _ := pod["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	r.refuse(len(containers) == 0, at, "is a Pod without containers", "name them in spec.containers")
	initial, _ := spec["initContainers"].([]any)
	for _, each := range slices.Concat(initial, containers) {
		container, _ := each.(map[string]any)
		name, _ := container["name"].(string)
		image, _ := container["image"].(string)
		if r.refuse(name == "" || image == "", at, "has a container without a name or without an image", "give both") {
			break
		}
	}
	if what := referenceOf(spec); what != "" {
		// Source: tryDecodeSinglePod in pkg/kubelet/config/common.go; the gate PreventStaticPodAPIReferences is on from 1.34 on.
		r.fault(at, what+" is an object of the cluster, which a static pod cannot have", "use files of the machine, such as spec.files and a volume with hostPath", r.result.Version.Minor >= 34)
	}
	volumes, _ := spec["volumes"].([]any)
	for _, each := range volumes {
		volume, _ := each.(map[string]any)
		host, _ := volume["hostPath"].(map[string]any)
		if host["path"] == "/etc/kubernetes/admin.conf" && r.spec.Role == Init && r.result.Version.Minor >= 29 {
			r.warn(at, "reads /etc/kubernetes/admin.conf, which has no rights until the API server of the cluster answers: on the first control plane mount super-admin.conf there instead")
		}
	}
}

// referenceOf returns the first field of the specification of a pod that refers to an object of the cluster, or "". Source:
// HasAPIObjectReference in pkg/api/pod of Kubernetes.
func referenceOf(spec map[string]any) string {
	for _, name := range []string{"serviceAccountName", "imagePullSecrets", "resourceClaims"} {
		if value := spec[name]; value != nil && value != "" {
			return name
		}
	}
	if name := keyWithin(spec, "secretKeyRef", "configMapKeyRef", "secretRef", "configMapRef", "clusterTrustBundle", "serviceAccountToken"); name != "" {
		return name
	}
	volumes, _ := spec["volumes"].([]any)
	for _, each := range volumes {
		volume, _ := each.(map[string]any)
		projected, _ := volume["projected"].(map[string]any)
		sources, _ := projected["sources"].([]any)
		for _, source := range append(sources, each) {
			if name := keyOf(source, "secret", "configMap", "csi", "persistentVolumeClaim", "ephemeral", "azureFile", "glusterfs"); name != "" {
				return name
			}
		}
	}
	return ""
}

// keyOf returns the first of the names that a mapping has, or "".
func keyOf(value any, names ...string) string {
	object, _ := value.(map[string]any)
	for _, name := range names {
		if object[name] != nil {
			return name
		}
	}
	return ""
}

// keyWithin is keyOf for a value and all that is in it.
func keyWithin(value any, names ...string) string {
	var inside []any
	switch value := value.(type) {
	case map[string]any:
		if name := keyOf(value, names...); name != "" {
			return name
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			inside = append(inside, value[key])
		}
	case []any:
		inside = value
	}
	for _, each := range inside {
		if name := keyWithin(each, names...); name != "" {
			return name
		}
	}
	return ""
}

// patchOfPod refuses a strategic patch that adds a container without an image to a static pod of kubeadm: containers are merged by name, and
// that of kubeadm has the name of the component.
func (r *resolver) patchOfPod(at document.Path, p v1alpha1.ComponentPatch) {
	var patch struct {
		Spec struct {
			Containers []struct{ Name, Image string } `json:"containers"`
		} `json:"spec"`
	}
	static := strings.HasPrefix(p.Target, "kube-") || p.Target == "etcd"
	if p.Type != "strategic" || !static || json.Unmarshal([]byte(p.Patch), &patch) != nil {
		return
	}
	for _, c := range patch.Spec.Containers {
		r.refuse(c.Image == "" && c.Name != p.Target, at, "has a container without an image, whose name is not that of the component, and the kubelet does not start it", "name it "+p.Target)
	}
}
