package settings

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/lazyregexp"
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
			if r.refuse(file.After, document.Path(file.Field)+".when", "makes a file after Kubernetes that a component reads at its start", "use beforeKubernetes") {
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
	i := slices.IndexFunc(r.result.Files, func(f File) bool { return f.Path == name })
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
	r.keysOfFile(at, argument, object)
	switch argument {
	case "audit-policy-file":
		r.auditPolicy(at, object, ends)
	case "encryption-provider-config":
		r.encryption(at, listOf(object["resources"]), ends)
	case "admission-control-config-file":
		r.podSecurity(at, object, ends)
	case "tracing-config-file":
		r.tracing(at, object, ends)
	case "authentication-config":
		r.issuers(at, object, ends)
	case "authorization-config":
		r.authorizers(at, object, ends)
	case "config":
		r.schedulerFile(at, object, master)
	}
}

// auditPolicy checks what is audited. Source: pkg/apis/audit/validation.
func (r *resolver) auditPolicy(at document.Path, object map[string]any, ends string) {
	rules := listOf(object["rules"])
	r.refuse(len(rules) == 0, at, "has no rules"+ends, "give one, such as level: Metadata")
	for _, of := range append(rules, object) {
		stages, _ := of["omitStages"].([]any)
		r.refuse(slices.ContainsFunc(stages, func(stage any) bool {
			return !slices.Contains([]any{"RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"}, stage)
		}), at, "has a stage in omitStages that audit does not have"+ends, "use RequestReceived, ResponseStarted, ResponseComplete and Panic")
	}
	for _, rule := range rules {
		r.refuse(!slices.Contains([]any{"None", "Metadata", "Request", "RequestResponse"}, rule["level"]), at, "has a rule without a level of audit"+ends,
			"use None, Metadata, Request or RequestResponse")
	}
}

// podSecurity checks the standards for pods. Source: pod-security-admission/admission/api/validation.
func (r *resolver) podSecurity(at document.Path, object map[string]any, ends string) {
	for _, plugin := range listOf(object["plugins"]) {
		configuration, _ := plugin["configuration"].(map[string]any)
		defaults, _ := configuration["defaults"].(map[string]any)
		for _, mode := range []string{"enforce", "audit", "warn"} {
			level, version := defaults[mode], fmt.Sprint(cmp.Or[any](defaults[mode+"-version"], "latest"))
			r.refuse(plugin["name"] == "PodSecurity" && !podSecurityVersion().MatchString(version), at, "has a version in defaults."+mode+"-version that PodSecurity does not take"+ends, "write latest, or one like v1.37")
			r.refuse(plugin["name"] == "PodSecurity" && level != nil && !slices.Contains([]any{"privileged", "baseline", "restricted"}, level), at,
				"has a level in defaults."+mode+" that PodSecurity does not have"+ends, "use privileged, baseline or restricted")
		}
	}
}

// tracing checks how many requests are traced.
func (r *resolver) tracing(at document.Path, object map[string]any, ends string) {
	rate, err := strconv.ParseInt(fmt.Sprint(object["samplingRatePerMillion"]), 10, 64)
	r.refuse(object["samplingRatePerMillion"] != nil && (err != nil || rate < 0 || rate > 1000000), at, "has a samplingRatePerMillion out of bounds"+ends, "use 0 to 1000000")
}

// issuers checks who issues tokens. Source: pkg/apis/apiserver/validation.
func (r *resolver) issuers(at document.Path, object map[string]any, ends string) {
	for _, token := range listOf(object["jwt"]) {
		issuer, _ := token["issuer"].(map[string]any)
		url, _ := issuer["url"].(string)
		audiences, _ := issuer["audiences"].([]any)
		r.refuse(!strings.HasPrefix(url, "https://") || len(audiences) == 0, at, "has an issuer of jwt without a url of https or without audiences"+ends, "give both")
	}
}

// authorizers checks the modes of authorization. Source: pkg/apis/apiserver/validation.
func (r *resolver) authorizers(at document.Path, object map[string]any, ends string) {
	authorizers := listOf(object["authorizers"])
	r.refuse(len(authorizers) == 0, at, "has no authorizers"+ends, "name Node, RBAC and others")
	for _, each := range authorizers {
		r.refuse(!slices.Contains([]any{"Webhook", "Node", "RBAC", "ABAC", "AlwaysAllow", "AlwaysDeny"}, each["type"]) || each["name"] == nil, at,
			"has an authorizer without a name, or of no type"+ends, "write it like {type: RBAC, name: rbac}")
	}
}

// schedulerFile checks the configuration of the scheduler.
func (r *resolver) schedulerFile(at document.Path, object map[string]any, master bool) {
	names := map[any]bool{}
	for _, profile := range listOf(object["profiles"]) {
		name := cmp.Or[any](profile["schedulerName"], "default-scheduler")
		r.refuse(names[name], at, "has two profiles of one schedulerName, and the scheduler does not start", "give each a name of its own")
		names[name] = true
	}
	client, _ := object["clientConnection"].(map[string]any)
	file, _ := client["kubeconfig"].(string)
	r.refuse(file == "" && !master, at, "has no clientConnection.kubeconfig, without which the scheduler ignores its argument kubeconfig and does not start",
		"write clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}")
}

// podSecurityVersion is a version of the standards for pods.
var podSecurityVersion = lazyregexp.New(`^(?:latest|v1\.[0-9]+)$`)

// keysOfFile refuses keys that a component does not decode, for the files that it reads strictly.
func (r *resolver) keysOfFile(at document.Path, argument string, object map[string]any) {
	known := map[string]string{
		"authentication-config": "jwt anonymous", "authorization-config": "authorizers",
		"config": "parallelism leaderElection clientConnection healthzBindAddress metricsBindAddress enableProfiling enableContentionProfiling percentageOfNodesToScore " +
			"podInitialBackoffSeconds podMaxBackoffSeconds profiles extenders delayCacheUntilActive",
	}[argument]
	for _, key := range slices.Sorted(maps.Keys(object)) {
		names := strings.Fields("apiVersion kind " + known)
		if known == "" || slices.Contains(names, key) {
			continue
		}
		hint := "remove it"
		if near := document.Nearest(key, names); near != "" {
			hint = "did you mean " + near + "?"
		}
		r.refuse(true, at, "has a key at its beginning that "+argument+" does not have, and the component does not start", hint)
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
			for _, name := range slices.Sorted(maps.Keys(provider)) {
				r.refuse(len(provider) > 1 || !slices.Contains([]string{"aescbc", "aesgcm", "secretbox", "identity", "kms"}, name), at, "has an item of providers that is not one provider"+ends,
					"use one of aescbc, aesgcm, secretbox, kms and identity for each item")
			}
			kms, given := provider["kms"].(map[string]any)
			endpoint, _ := kms["endpoint"].(string)
			r.refuse(given && (!strings.HasPrefix(endpoint, "unix:") || kms["apiVersion"] != nil && kms["apiVersion"] != "v1" && kms["apiVersion"] != "v2"), at,
				"has a kms whose endpoint is no socket, or whose version is not v1 or v2"+ends, "write it like {apiVersion: v2, name: site, endpoint: unix:///run/kms.sock}")
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
