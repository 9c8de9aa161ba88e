package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	r.fieldsOfPod(at, spec)
	initial, _ := spec["initContainers"].([]any)
	names, volumeNames := map[string]bool{}, map[string]bool{}
	for _, volume := range listOf(spec["volumes"]) {
		name, _ := volume["name"].(string)
		r.refuse(volumeNames[name], at, "has two volumes named "+name, "give each a name of its own")
		volumeNames[name] = true
	}
	metadata, _ := pod["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	r.refuse(!v1alpha1.IsSubdomain(name), at, "has a name in its metadata that the kubelet does not take", "use lower-case letters, digits, dots and -")
	r.refuse(r.spec.Role != Worker && slices.Contains(v1alpha1.PatchTargets(), name) && metadata["namespace"] == "kube-system", at, "is named as a pod of kubeadm on this machine, and one of the two does not start",
		"give it another name in its metadata")
	for _, each := range slices.Concat(initial, containers) {
		container, _ := each.(map[string]any)
		name, _ := container["name"].(string)
		image, _ := container["image"].(string)
		if r.refuse(name == "" || image == "", at, "has a container without a name or without an image", "give both") ||
			r.refuse(!label().MatchString(name), at, "has a container whose name is no DNS label", "use at most 63 lower-case letters, digits and -") ||
			r.refuse(names[name], at, "has two containers named "+name, "give each a name of its own") {
			break
		}
		names[name] = true
		r.containerOfPod(at, name, container, volumeNames)
		if spec["hostNetwork"] == true {
			r.portsOfMachine(at, name, container)
		}
	}
	policy, _ := spec["restartPolicy"].(string)
	r.refuse(policy != "" && !slices.Contains([]string{"Always", "OnFailure", "Never"}, policy), at, "has a restartPolicy that the kubelet does not take", "use Always, OnFailure or Never")
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

// fieldsOfPod refuses fields that a pod does not have, values of another type, which the kubelet does not decode, and values of few that are none
// of them.
func (r *resolver) fieldsOfPod(at document.Path, spec map[string]any) {
	known := schemaOf("PodSpec")
	known.inside["initContainers"] = known.inside["containers"]
	choices := map[string][]string{
		"volumes[].hostPath.type":                   {"DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"},
		"dnsPolicy":                                 {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"},
		"tolerations[].effect":                      {"NoSchedule", "PreferNoSchedule", "NoExecute"},
		"containers[].ports[].protocol":             {"TCP", "UDP", "SCTP"},
		"containers[].terminationMessagePolicy":     {"File", "FallbackToLogsOnError"},
		"containers[].livenessProbe.httpGet.scheme": {"HTTP", "HTTPS"}, "containers[].readinessProbe.httpGet.scheme": {"HTTP", "HTTPS"},
		"containers[].startupProbe.httpGet.scheme":     {"HTTP", "HTTPS"},
		"containers[].volumeMounts[].mountPropagation": {"None", "HostToContainer", "Bidirectional"},
	}
	inspection{
		kind: "PodSpec", minor: r.result.Version.Minor,
		found: func(inside document.Path, message, hint string) { r.refuse(true, at, string(inside)+" "+message, hint) },
		check: func(path string, value any) (message, hint string) {
			path = strings.Replace(path, "initContainers", "containers", 1)
			text, _ := value.(string)
			if known := choices[path]; known != nil && text != "" && !slices.Contains(known, text) {
				return "is not a value of this field", "use one of " + strings.Join(known, ", ")
			}
			if number, ok := value.(json.Number); ok && strings.HasPrefix(number.String(), "-") && strings.Contains(path, "securityContext.") {
				return "is below 0, which the kubelet does not take", "use 0 to 2147483647"
			}
			if path == "containers[].image" && strings.ContainsAny(text, " \t\n") {
				return "has a blank, and is no image", "remove it"
			}
			return "", ""
		},
	}.visit(known, "", "spec", spec)
}

// amount is the number that a quantity is.
func amount(text string) float64 {
	digits := strings.TrimRight(text, "numkKMGTPEi")
	number, _ := strconv.ParseFloat(digits, 64) // a quantity, or refused
	return number * map[string]float64{
		"": 1, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
		"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60,
	}[text[len(digits):]]
}

// containerOfPod refuses what the kubelet refuses of a container. Source: ValidatePodCreate in pkg/apis/core/validation.
func (r *resolver) containerOfPod(at document.Path, name string, container map[string]any, volumes map[string]bool) {
	of := " of the container " + name + " that the kubelet does not take"
	for _, port := range listOf(container["ports"]) {
		for _, field := range []string{"containerPort", "hostPort"} {
			number, err := strconv.Atoi(fmt.Sprint(port[field]))
			r.refuse(port[field] != nil && (err != nil || number < 1 || number > 65535), at, "has a port"+of, "use 1 to 65535")
		}
	}
	r.amounts(at, name, container)
	resources, _ := container["resources"].(map[string]any)
	requests, _ := resources["requests"].(map[string]any)
	limits, _ := resources["limits"].(map[string]any)
	for _, resource := range slices.Sorted(maps.Keys(requests)) {
		limit := limits[resource]
		r.refuse(limit != nil && amount(fmt.Sprint(requests[resource])) > amount(fmt.Sprint(limit)), at, "has a request of "+resource+" above its limit"+of, "raise the limit, or lower the request")
	}
	for _, name := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		probe, _ := container[name].(map[string]any)
		for _, how := range []string{"httpGet", "tcpSocket", "grpc"} {
			action, given := probe[how].(map[string]any)
			r.refuse(given && action["port"] == nil, at, "has a "+name+" without a port"+of, "give "+how+" a port")
			port, named := action["port"].(string)
			if named && !slices.ContainsFunc(listOf(container["ports"]), func(p map[string]any) bool { return p["name"] == port }) {
				r.warn(at, "has a "+name+" at a port with a name that no port of the container has, so that it fails each time: use the number")
			}
		}
	}
	for _, mount := range listOf(container["volumeMounts"]) {
		volume, _ := mount["name"].(string)
		where, _ := mount["mountPath"].(string)
		r.refuse(!volumes[volume] || where == "" || strings.Contains(where, ":"), at, "has a mount"+of, "give it a mountPath, and the name of one of spec.volumes")
	}
	policy, _ := container["imagePullPolicy"].(string)
	r.refuse(policy != "" && !slices.Contains([]string{"Always", "IfNotPresent", "Never"}, policy), at, "has an imagePullPolicy"+of, "use Always, IfNotPresent or Never")
}

// portsOfMachine checks the ports of a container in the network of the machine. Source: validateHostNetwork in pkg/apis/core/validation.
func (r *resolver) portsOfMachine(at document.Path, name string, container map[string]any) {
	for _, port := range listOf(container["ports"]) {
		number := fmt.Sprint(port["containerPort"])
		r.refuse(port["hostPort"] != nil && fmt.Sprint(port["hostPort"]) != number, at, "has a hostPort of the container "+name+
			" other than its containerPort, which the kubelet does not take of a pod with hostNetwork", "make both the port on which the program listens")
		if r.spec.Role != Worker && port["hostIP"] == nil && number == fmt.Sprint(Settings{Spec: r.spec}.Port()) {
			r.warn(at, "has the port of the API server of this machine in the container "+name+": one of the two does not start, unless each listens on an address of its own")
		}
	}
}

// listOf returns the mappings of a list.
func listOf(value any) (all []map[string]any) {
	items, _ := value.([]any)
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			all = append(all, object)
		}
	}
	return all
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

// amounts refuses amounts of resources that the kubelet does not decode.
func (r *resolver) amounts(at document.Path, name string, container map[string]any) {
	resources, _ := container["resources"].(map[string]any)
	for _, field := range []string{"limits", "requests"} {
		amounts, _ := resources[field].(map[string]any)
		for _, resource := range slices.Sorted(maps.Keys(amounts)) {
			text, isText := amounts[resource].(string)
			r.refuse(isText && !quantity().MatchString(text), at, "has an amount of "+resource+" of the container "+name+" that the kubelet does not take", "write it like 500Mi or 250m")
			if isText && resource == "memory" && strings.HasSuffix(text, "m") {
				r.warn(at, "has an amount of memory of the container "+name+" in thousandths of a byte, which m is: write Mi for mebibytes")
			}
		}
	}
}

// patchOfPod refuses fields that a pod does not have, amounts that the kubelet does not decode, and a strategic patch that adds a container without
// an image to a static pod of kubeadm: containers are merged by name, and that of kubeadm has the name of the component.
func (r *resolver) patchOfPod(at document.Path, p v1alpha1.ComponentPatch) {
	var patch struct {
		Spec struct {
			Containers []struct {
				Name, Image string
				Command     []string
			} `json:"containers"`
		} `json:"spec"`
	}
	static := strings.HasPrefix(p.Target, "kube-") || p.Target == "etcd"
	pod := objectOf([]byte(p.Patch))
	if spec, _ := pod["spec"].(map[string]any); static && p.Type != "json" && !strings.Contains(p.Patch, `"$`) { // which strategic merge reads
		r.fieldsOfPod(at, spec)
		if spec["hostNetwork"] == false {
			r.warn(at, "takes "+p.Target+" from the network of the machine, where kubeadm and the other components look for it: remove hostNetwork")
		}
		for _, container := range listOf(spec["containers"]) {
			name, _ := container["name"].(string)
			r.amounts(at, name, container)
		}
	}
	if p.Type == "merge" && static && json.Unmarshal([]byte(p.Patch), &patch) == nil {
		for _, c := range patch.Spec.Containers {
			r.refuse(c.Image == "", at, "replaces the list of containers, in which one has no image, and the kubelet does not start it", "use type: strategic, which merges them by name")
		}
	}
	if p.Type != "strategic" || !static || json.Unmarshal([]byte(p.Patch), &patch) != nil {
		return
	}
	kind, version := pod["kind"], pod["apiVersion"]
	r.refuse(kind != nil && kind != "Pod" || version != nil && version != "v1", at, "makes something else than a Pod of "+p.Target+", which the kubelet does not start", "remove kind and apiVersion")
	for _, c := range patch.Spec.Containers {
		r.refuse(c.Name == p.Target && len(c.Command) > 0 && strings.HasPrefix(c.Command[0], "-"), at, "replaces the command of "+p.Target+" by one without a program", "give arguments in its field of the spec, or a patch of type json")
		if c.Name == p.Target && len(c.Command) > 0 && !strings.HasPrefix(c.Command[0], "-") {
			r.warn(at, "replaces the whole command of "+p.Target+", with all arguments that kubeadm gives it: give arguments in its field of the spec, or a patch of type json")
		}
		r.refuse(c.Image == "" && c.Name != p.Target, at, "has a container without an image, whose name is not the component's, and the kubelet does not start it", "name it "+p.Target)
	}
}
