package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// together finds fields of the kubelet that do not go together.
type together struct {
	r *resolver
	k map[string]any
	// flags are the places of the fields that arguments set.
	flags map[string]document.Path
}

// at returns the place of a field.
func (t together) at(field string, otherwise document.Path) document.Path {
	if at := t.flags[field]; at != "" {
		return at
	}
	return otherwise
}

// clash refuses fields that do not go together. What a patch changes is not known here, nor what a cluster says that the node joins: then it
// warns.
func (t together) clash(bad bool, message, hint string, fields ...string) {
	if !bad || slices.ContainsFunc(fields, t.r.patched) {
		return
	}
	at := t.at(fields[0], document.Path("spec.kubelet.config").Field(fields[0]))
	certain := !slices.ContainsFunc(fields, func(name string) bool { return t.k[name] == nil })
	if t.r.spec.Role == Init || certain {
		t.r.refuse(true, at, message, hint)
		return
	}
	t.r.result.Warnings = append(t.r.result.Warnings, sdk.Warning{Field: string(at), Message: message + ", unless the cluster has it: " + hint})
}

func (t together) number(name string, otherwise float64) float64 {
	if n, ok := t.k[name].(json.Number); ok {
		otherwise, _ = n.Float64()
	}
	return otherwise
}

func (t together) length(name string, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(fmt.Sprint(t.k[name])); err == nil && d != 0 {
		return d
	}
	return otherwise
}

// fields checks pairs of fields.
func (t together) fields() {
	_, high := t.k["imageGCHighThresholdPercent"]
	if first, second := "imageGCLowThresholdPercent", "imageGCHighThresholdPercent"; high || t.k[first] != nil {
		if high {
			first, second = second, first
		}
		t.clash(t.number("imageGCLowThresholdPercent", 80) >= t.number("imageGCHighThresholdPercent", 85),
			"with this value imageGCLowThresholdPercent, by default 80, is not less than imageGCHighThresholdPercent, by default 85", "set "+second+" as well", first, second)
	}
	soft, _ := t.k["evictionSoft"].(map[string]any)
	periods, _ := t.k["evictionSoftGracePeriod"].(map[string]any)
	for _, signal := range signals() {
		t.clash(soft[signal] != nil && periods[signal] == nil, signal+" has no grace period, without which the kubelet does not start",
			"give it in spec.kubelet.config.evictionSoftGracePeriod, such as 1m30s", "evictionSoft", "evictionSoftGracePeriod")
	}
	oldest := t.length("imageMaximumGCAge", 0)
	t.clash(oldest > 0 && oldest <= t.length("imageMinimumGCAge", 2*time.Minute), "must be greater than imageMinimumGCAge, by default 2m", "set imageMinimumGCAge as well", "imageMaximumGCAge", "imageMinimumGCAge")
	t.clash(t.length("shutdownGracePeriodCriticalPods", 0) > t.length("shutdownGracePeriod", 0), "is a part of shutdownGracePeriod, by default 0s", "set shutdownGracePeriod as well", "shutdownGracePeriodCriticalPods", "shutdownGracePeriod")
	t.clash(t.k["serializeImagePulls"] == true && t.number("maxParallelImagePulls", 1) > 1, "excludes serializeImagePulls: true", "remove one of the two", "maxParallelImagePulls", "serializeImagePulls")
	options, _ := t.k["cpuManagerPolicyOptions"].(map[string]any)
	t.clash(len(options) > 0 && (t.k["cpuManagerPolicy"] == nil || t.k["cpuManagerPolicy"] == "none"), "needs cpuManagerPolicy: static", "set it as well, or remove this one",
		"cpuManagerPolicyOptions", "cpuManagerPolicy")
	ports := []string{"port", "healthzPort", "readOnlyPort"}
	for i, name := range ports {
		defaults := map[string]float64{"port": 10250, "healthzPort": 10248}
		for _, other := range ports[i+1:] {
			t.clash(t.number(name, defaults[name]) == t.number(other, defaults[other]) && t.number(other, defaults[other]) != 0, "is the port of "+name+" as well", "use another one", other, name)
		}
	}
	images, _ := t.k["imageServiceEndpoint"].(string)
	scheme, _, schemed := strings.Cut(images, "://")
	t.clash(schemed && scheme != "unix" && !t.r.result.Windows, "is no socket of this machine, and the kubelet does not start", "write it like unix:///run/containerd/containerd.sock", "imageServiceEndpoint")
	for first, second := range map[string]string{"tlsCertFile": "tlsPrivateKeyFile", "tlsPrivateKeyFile": "tlsCertFile"} {
		t.clash(t.k[first] != nil && t.k[first] != "" && (t.k[second] == nil || t.k[second] == ""), "needs "+second, "set it as well, or neither", first, second)
	}
	gates, _ := t.k["featureGates"].(map[string]any)
	restarts, _ := t.k["crashLoopBackOff"].(map[string]any)
	t.clash(restarts["maxContainerRestartPeriod"] != nil && t.r.result.Version.Minor < 35 && gates["KubeletCrashLoopBackOffMax"] == nil, "needs the feature gate KubeletCrashLoopBackOffMax before 1.35",
		"set it as well in featureGates", "crashLoopBackOff", "featureGates")
	t.clash(t.k["systemCgroups"] != nil && t.k["cgroupRoot"] == nil, "needs cgroupRoot", "set cgroupRoot as well", "systemCgroups", "cgroupRoot")
	t.clash(t.k["enableSystemLogQuery"] == true && t.k["enableSystemLogHandler"] == false, "needs enableSystemLogHandler", "remove one of the two", "enableSystemLogQuery", "enableSystemLogHandler")
	logging, _ := t.k["logging"].(map[string]any)
	t.clash(logging["format"] == "json" && logging["vmodule"] != nil, "has vmodule, which is for the format text", "remove one of the two", "logging")
	list, policy := "preloadedImagesVerificationAllowlist", "imagePullCredentialsVerificationPolicy"
	t.clash(t.k[list] != nil && t.k[policy] != "NeverVerifyAllowlistedImages", "needs "+policy+": NeverVerifyAllowlistedImages", "set it as well", list, policy)
	for _, period := range []string{"shutdownGracePeriod", "shutdownGracePeriodCriticalPods"} {
		t.clash(t.k["shutdownGracePeriodByPodPriority"] != nil && t.length(period, 0) > 0, "excludes "+period, "remove one of the two", "shutdownGracePeriodByPodPriority", period)
	}
}

// reserved checks what is kept for the system.
func (t together) reserved() {
	enforced, _ := t.k["enforceNodeAllocatable"].([]any)
	has := func(name string) bool { return slices.Contains(enforced, any(name)) }
	seen := map[string]bool{}
	for _, item := range enforced {
		name := fmt.Sprint(item)
		t.clash(seen[name] || name == "none" && len(enforced) > 1, "has an item twice, or none with others", "remove it", "enforceNodeAllocatable")
		seen[name] = true
	}
	for _, who := range []string{"system", "kube"} {
		group, name := who+"ReservedCgroup", who+"-reserved"
		t.clash(t.k["reservedSystemCPUs"] != nil && t.k[group] != nil, "excludes "+group, "remove one of the two", "reservedSystemCPUs", group)
		t.clash((has(name) || has(name+"-compressible")) && t.k[group] == nil, "needs "+group, "set "+group+" as well", "enforceNodeAllocatable", group)
		t.clash(has(name) && has(name+"-compressible"), "has both "+name+" and "+name+"-compressible", "remove one of the two", "enforceNodeAllocatable")
	}
	reserved, _ := t.k["reservedMemory"].([]any)
	for _, item := range reserved {
		entry, _ := item.(map[string]any)
		limits, _ := entry["limits"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			key, zero := fmt.Sprint(entry["numaNode"], name), strings.Trim(fmt.Sprint(limits[name]), "0.KMGTPEimk") == ""
			t.clash(zero || seen[key] || name != "memory" && !strings.HasPrefix(name, "hugepages-"),
				"has a resource that is 0, that is there twice for a node, or that is neither memory nor hugepages-SIZE", "remove it", "reservedMemory")
			seen[key] = true
		}
	}
	t.clash(t.k["cgroupsPerQOS"] == false && t.k["enforceNodeAllocatable"] == nil, "excludes enforceNodeAllocatable, by default [pods]", "set enforceNodeAllocatable: []", "cgroupsPerQOS", "enforceNodeAllocatable")
	cpu := func(name string) bool { object, _ := t.k[name].(map[string]any); return object["cpu"] != nil }
	t.clash(t.k["cpuManagerPolicy"] == "static" && !cpu("systemReserved") && !cpu("kubeReserved") && t.k["reservedSystemCPUs"] == nil,
		"static needs a reserved CPU", "set reservedSystemCPUs, or cpu in spec.kubelet.systemReserved or kubeReserved", "cpuManagerPolicy", "systemReserved", "kubeReserved", "reservedSystemCPUs")
	t.clash(t.k["memoryManagerPolicy"] == "Static" && t.k["reservedMemory"] == nil, "Static needs reservedMemory", "set reservedMemory as well", "memoryManagerPolicy", "reservedMemory")
}

// patched reports whether a patch or an argument of this node may change a field of the kubelet.
func (r *resolver) patched(field string) bool {
	return slices.ContainsFunc(r.spec.Patches, func(p v1alpha1.ComponentPatch) bool {
		return p.Target == "kubeletconfiguration" && strings.Contains(p.Patch, field)
	})
}
