package settings

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// This file checks the files of spec.files that components of the control plane read when they start.

// readKinds are the kinds of the files that arguments name, as APIVERSION/KIND, and the first minor version of Kubernetes that reads it. The first one
// is the one to write. Sources: pkg/apis/apiserver and pkg/apis/audit of apiserver, pkg/scheduler/apis/config of Kubernetes.
func readKinds() map[string]map[string]int {
	const config = "apiserver.config.k8s.io/"
	return map[string]map[string]int{
		"audit-policy-file":             {"audit.k8s.io/v1/Policy": 0},
		"encryption-provider-config":    {config + "v1/EncryptionConfiguration": 0, "v1/EncryptionConfig": 0},
		"admission-control-config-file": {config + "v1/AdmissionConfiguration": 0, "apiserver.k8s.io/v1alpha1/AdmissionConfiguration": 0},
		"authentication-config":         {config + "v1/AuthenticationConfiguration": 34, config + "v1beta1/AuthenticationConfiguration": 30, config + "v1alpha1/AuthenticationConfiguration": 0},
		"authorization-config":          {config + "v1/AuthorizationConfiguration": 32, config + "v1beta1/AuthorizationConfiguration": 30, config + "v1alpha1/AuthorizationConfiguration": 0},
		"egress-selector-config-file":   {"apiserver.k8s.io/v1beta1/EgressSelectorConfiguration": 0, "apiserver.k8s.io/v1alpha1/EgressSelectorConfiguration": 0},
		"tracing-config-file":           {config + "v1/TracingConfiguration": 34, config + "v1beta1/TracingConfiguration": 0, config + "v1alpha1/TracingConfiguration": 0},
		"config":                        {"kubescheduler.config.k8s.io/v1/KubeSchedulerConfiguration": 0},
	}
}

// configFiles refuses files with which a component does not start, as far as spec.files has them. A component with a patch or an image of its own is
// left alone.
func (r *resolver) configFiles() {
	for _, c := range Components(r.spec) {
		if c.Want == nil || c.Want.Image != "" || r.patchedComponent(c.Name) {
			continue
		}
		at := document.Path("spec").Field(c.Field)
		for i, v := range c.Want.Volumes {
			r.kindOfVolume((at+".volumes").Index(i)+".pathType", v)
		}
		for i, a := range c.Want.Args {
			kinds := readKinds()[a.Name]
			file := r.fileOf(c.Want.Volumes, a.Value)
			if kinds == nil || file == nil || i != lastArgument(c.Want.Args, a.Name) {
				continue
			}
			data, err := document.JSON("", file.Content)
			object := objectOf(data)
			if err != nil || object == nil {
				continue // the component may read what is no YAML of this package, such as an anchor
			}
			r.configFile(document.Path(file.Field), a.Name, kinds, object, lastArgument(c.Want.Args, "master") >= 0)
		}
	}
}

// kindOfVolume refuses a type that a path of spec.files has not.
func (r *resolver) kindOfVolume(at document.Path, v v1alpha1.HostVolume) {
	for _, f := range r.result.Files {
		isFile, above := f.Path == v.HostPath, f.Path != v.HostPath && within(f.Path, v.HostPath)
		bad := isFile && strings.HasPrefix(v.PathType, "Directory") || above && strings.HasPrefix(v.PathType, "File")
		if r.refuse(bad, at, "is not what "+f.Field+" makes of this path, and the kubelet does not start the component", "use File for a file, and Directory for a directory") {
			return
		}
	}
}

// fileOf returns the file of the document that a container has at a path, nil for none.
func (r *resolver) fileOf(volumes []v1alpha1.HostVolume, name string) *File {
	if v := r.volumeOf(volumes, name); v != nil && v.MountPath != "" {
		name = v.HostPath + strings.TrimPrefix(name, v.MountPath)
	}
	i := slices.IndexFunc(r.result.Files, func(f File) bool { return f.Path == name && !f.After })
	if i < 0 {
		return nil
	}
	return &r.result.Files[i]
}

// configFile checks one file.
func (r *resolver) configFile(at document.Path, argument string, kinds map[string]int, object map[string]any, master bool) {
	written := ""
	for kind, since := range kinds {
		if since <= r.result.Version.Minor && (written == "" || better(kind, written)) {
			written = kind
		}
	}
	cut := strings.LastIndexByte(written, '/')
	since, known := kinds[fmt.Sprintf("%v/%v", object["apiVersion"], object["kind"])]
	if r.refuse(!known || since > r.result.Version.Minor, at, "is of a kind or a version that "+argument+" does not take, and the component does not start",
		"write apiVersion: "+written[:cut]+" and kind: "+written[cut+1:]) {
		return
	}
	const ends = ", and the API server does not start"
	switch argument {
	case "audit-policy-file":
		rules := listOf(object["rules"])
		r.refuse(len(rules) == 0, at, "has no rules"+ends, "give one, such as level: Metadata")
		for _, rule := range rules {
			r.refuse(!slices.Contains([]any{"None", "Metadata", "Request", "RequestResponse"}, rule["level"]), at, "has a rule without a level of audit"+ends,
				"use None, Metadata, Request or RequestResponse")
		}
	case "encryption-provider-config":
		r.encryption(at, listOf(object["resources"]), ends)
	case "admission-control-config-file":
		for _, plugin := range listOf(object["plugins"]) {
			configuration, _ := plugin["configuration"].(map[string]any)
			defaults, _ := configuration["defaults"].(map[string]any)
			for _, mode := range []string{"enforce", "audit", "warn"} {
				level := defaults[mode]
				r.refuse(plugin["name"] == "PodSecurity" && level != nil && !slices.Contains([]any{"privileged", "baseline", "restricted"}, level), at,
					"has a level in defaults."+mode+" that PodSecurity does not have"+ends, "use privileged, baseline or restricted")
			}
		}
	case "config":
		client, _ := object["clientConnection"].(map[string]any)
		file, _ := client["kubeconfig"].(string)
		r.refuse(file == "" && !master, at, "has no clientConnection.kubeconfig, without which the scheduler ignores its argument kubeconfig and does not start",
			"write clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}")
	}
}

// better reports whether one kind is to be written rather than another: the later version, and the longer name.
func better(kind, than string) bool {
	stable := func(text string) bool { return strings.Contains(text, "/v1/") }
	if stable(kind) != stable(than) {
		return stable(kind)
	}
	return strings.Contains(kind, "beta") && !stable(than) || strings.Contains(kind, "Configuration") && !strings.Contains(than, "Configuration")
}

// encryption checks what the API server encrypts, and the keys. Source: pkg/apis/apiserver/validation.
func (r *resolver) encryption(at document.Path, resources []map[string]any, ends string) {
	r.refuse(len(resources) == 0, at, "has no resources"+ends, "name them, such as secrets, with their providers")
	sizes := map[string][]int{"aescbc": {16, 24, 32}, "aesgcm": {16, 24, 32}, "secretbox": {32}}
	for _, each := range resources {
		names, _ := each["resources"].([]any)
		providers := listOf(each["providers"])
		r.refuse(len(names) == 0 || len(providers) == 0, at, "has resources without names or without providers"+ends, "give both, such as resources: [secrets]")
		for _, provider := range providers {
			for _, cipher := range []string{"aescbc", "aesgcm", "secretbox"} {
				settings, given := provider[cipher].(map[string]any)
				keys := listOf(settings["keys"])
				bad := given && len(keys) == 0
				for _, key := range keys {
					text, _ := key["secret"].(string)
					secret, err := base64.StdEncoding.DecodeString(text) // never its error: it may quote
					bad = bad || err != nil || key["name"] == nil || !slices.Contains(sizes[cipher], len(secret))
				}
				r.refuse(bad, at, "has a key of "+cipher+" without a name, or whose secret is not base64 of its length"+ends, "use a name, and 32 random bytes as base64")
			}
		}
	}
}
