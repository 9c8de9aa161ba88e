package settings

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// signals are what the kubelet can evict pods for. Source: pkg/kubelet/eviction/api.
func signals() []string {
	return []string{
		"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "containerfs.available",
		"containerfs.inodesFree", "pid.available",
	}
}

// isThreshold reports whether the kubelet reads a threshold of an eviction: above zero, or a percentage of at most 100.
func isThreshold(text string) bool {
	number, percentage := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(number, 64)
	return threshold.MatchString(text) && (percentage && value <= 100 || !percentage && (err != nil || value > 0))
}

// bounds of a number, or of a duration in seconds.
type bounds struct{ least, most float64 }

const unbounded = 1 << 62

// kubeletBounds are of fields with a value of their own; for other fields 0 is their default. Source: ValidateKubeletConfiguration in
// pkg/kubelet/apis/config/validation, and ValidateTracingConfiguration in component-base.
func kubeletBounds() map[string]bounds {
	natural, port, percent, bit := bounds{0, unbounded}, bounds{0, 65535}, bounds{0, 100}, bounds{0, 31}
	return map[string]bounds{
		"nodeLeaseDurationSeconds": natural, "eventBurst": natural, "eventRecordQPS": natural, "kubeAPIBurst": natural, "kubeAPIQPS": natural,
		"maxOpenFiles": natural, "maxPods": natural, "podsPerCore": natural, "registryBurst": natural, "registryPullQPS": natural,
		"healthzPort": port, "port": port, "readOnlyPort": port,
		"imageGCHighThresholdPercent": percent, "imageGCLowThresholdPercent": percent,
		"iptablesDropBit": bit, "iptablesMasqueradeBit": bit,
		"nodeStatusMaxImages": {-1, unbounded}, "oomScoreAdj": {-1000, 1000}, "maxParallelImagePulls": {1, unbounded},
		"containerLogMaxWorkers": {1, unbounded}, "containerLogMaxFiles": {2, unbounded}, "containerLogMonitorInterval": {3, unbounded},
		"memoryThrottlingFactor": {1e-45, 1}, "userNamespaces.idsPerPod": {65536, 1<<32 - 1}, "tracing.samplingRatePerMillion": {0, 1000000},
		"imageMinimumGCAge": natural, "imageMaximumGCAge": natural, "cpuCFSQuotaPeriod": {0.001, 1}, "evictionSoftGracePeriod{}": natural,
		"crashLoopBackOff.maxContainerRestartPeriod": {1, 300},
	}
}

// The forms of texts. Sources: as of kubeletChoices, k8s.io/utils/cpuset, component-base/metrics, and pkg/kubelet/sysctl.
var (
	cpus          = regexp.MustCompile(`^(?:[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*)?$`)
	hiddenVersion = regexp.MustCompile(`^(?:[0-9]+\.[0-9]+)?$`)
	logsPath      = regexp.MustCompile(`^(?:(?:/\.{0,2}[!--0-~ ][!-.0-~ ]*)+|[A-Za-z]:\\[ -~]+)?$`)
	noBlank       = regexp.MustCompile(`^\S*$`)
	namespaced    = regexp.MustCompile(`^(?:kernel[./](?:shm|msg|sem)|fs[./]mqueue[./]|net[./]|user[./])[-_./a-z0-9]*\*?$`)
)

func kubeletForms() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"reservedSystemCPUs": cpus, "showHiddenMetricsForVersion": hiddenVersion, "podLogsDir": logsPath, "tracing.endpoint": noBlank,
		"containerLogMaxSize": quantity, "evictionMinimumReclaim{}": threshold, "allowedUnsafeSysctls[]": namespaced,
	}
}

// kubeletChoices are the values of fields that have few. Sources: ValidateKubeletConfiguration, and what reads the field: pkg/kubelet/cm,
// cmd/kubelet/app/auth.go, pkg/kubelet/kubelet.go and component-base/cli/flag.
func kubeletChoices() map[string][]string {
	ciphers := []string{"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"} // former names
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		ciphers = append(ciphers, suite.Name)
	}
	return map[string][]string{
		"topologyManagerPolicy":                     {"none", "best-effort", "restricted", "single-numa-node"},
		"topologyManagerScope":                      {"container", "pod"},
		"hairpinMode":                               {"promiscuous-bridge", "hairpin-veth", "none"},
		"memorySwap.swapBehavior":                   {"", "NoSwap", "LimitedSwap"},
		"cpuManagerPolicy":                          {"none", "static"},
		"memoryManagerPolicy":                       {"None", "Static", "BestEffort"},
		"authorization.mode":                        {"AlwaysAllow", "Webhook"},
		"configMapAndSecretChangeDetectionStrategy": {"Get", "Cache", "Watch"},
		"logging.format":                            {"text", "json"},
		"tlsMinVersion":                             {"VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"},
		"tlsCipherSuites[]":                         ciphers,
		"memoryReservationPolicy":                   {"None", "TieredReservation"},
		"enforceNodeAllocatable[]":                  {"pods", "system-reserved", "kube-reserved", "system-reserved-compressible", "kube-reserved-compressible", "none"},
		"evictionHard{key}":                         signals(), "evictionSoft{key}": signals(), "evictionSoftGracePeriod{key}": signals(), "evictionMinimumReclaim{key}": signals(),
		"imagePullCredentialsVerificationPolicy": {"NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages", "AlwaysVerify"},
	}
}

// checkKubelet says with which value the kubelet does not start, or does without it.
func checkKubelet(path string, value any) (message, hint string) {
	text, _ := value.(string)
	if known := kubeletChoices()[path]; known != nil && text != "" && !slices.Contains(known, text) {
		return "is not a value of this field", "use one of " + strings.Join(known, ", ")
	}
	if b, ok := kubeletBounds()[path]; ok && !b.have(value) {
		if b.most == unbounded {
			return fmt.Sprintf("must be at least %v", b.least), ""
		}
		return fmt.Sprintf("must be from %v to %v", b.least, b.most), ""
	}
	if form := kubeletForms()[path]; form != nil && !form.MatchString(text) || path == "reservedSystemCPUs" && reversed(text) {
		return "is not a value of this field", "see the reference of KubeletConfiguration"
	}
	ip, err := netip.ParseAddr(text)
	period, notPeriod := time.ParseDuration(text)
	number, _ := strconv.ParseInt(fmt.Sprint(value), 10, 64)
	switch {
	case path == "runOnce" && value == true:
		return "makes the kubelet end", "remove it"
	case (path == "clusterDNS[]" || path == "address" || path == "healthzBindAddress") && text != "" && (err != nil || ip.Zone() != ""):
		return "is not an IP address", ""
	case strings.HasPrefix(path, "shutdownGracePeriod") && (period < 0 || period > 0 && period < time.Second):
		return "must be 0s or at least 1s", ""
	case path == "evictionSoftGracePeriod{}" && notPeriod != nil:
		return mistyped("duration", value)
	case (path == "evictionSoft{}" || path == "evictionHard{}") && !isThreshold(text), path == "evictionMinimumReclaim{}" && text == "0%":
		return "is not a threshold", "write it like 5% or 100Mi"
	case path == "userNamespaces.idsPerPod" && number%65536 != 0:
		return "must be a multiple of 65536", ""
	}
	return "", ""
}

// reversed reports whether a list of CPUs has a range that ends before it begins.
func reversed(cpus string) bool {
	for part := range strings.SplitSeq(cpus, ",") {
		first, last, ok := strings.Cut(part, "-")
		from, _ := strconv.Atoi(first)
		if to, _ := strconv.Atoi(last); ok && to < from {
			return true
		}
	}
	return false
}

// have reports whether a number or a duration is within the bounds.
func (b bounds) have(value any) bool {
	var n float64
	switch v := value.(type) {
	case json.Number:
		n, _ = v.Float64() // a number
	case string:
		d, _ := time.ParseDuration(v) // a duration
		n = d.Seconds()
	}
	return n >= b.least && n <= b.most
}

// kubeletFields inspects spec.kubelet.config, and the patches of the kubelet's configuration.
func (r *resolver) kubeletFields() {
	minor := r.result.Version.Minor
	i := inspection{kind: "KubeletConfiguration", minor: minor, check: checkKubelet, found: r.found}
	s := schemaOf(i.kind)
	if r.spec.Kubelet != nil {
		i.visit(s, "", "spec.kubelet.config", objectValue(r.spec.Kubelet.Config))
	}
	for n, p := range r.spec.Patches {
		at := document.Path("spec.patches").Index(n) + ".patch"
		i.found = func(inner document.Path, message, hint string) { r.refuse(true, at, string(inner)+" "+message, hint) }
		var operations []operation
		switch {
		case p.Type == "json" && json.Unmarshal([]byte(p.Patch), &operations) == nil:
			r.operations(at, operations, p.Target, i)
		case p.Type != "json" && p.Target == "kubeletconfiguration":
			i.visit(s, "", "", objectValue([]byte(p.Patch)))
		}
	}
	if r.spec.KubeProxy != nil {
		i := inspection{kind: "KubeProxyConfiguration", minor: minor, found: r.found, check: func(string, any) (string, string) { return "", "" }}
		i.visit(schemaOf(i.kind), "", "spec.kubeProxy.config", objectValue(r.spec.KubeProxy.Config))
	}
	t := together{r, r.result.Kubelet}
	t.fields()
	t.reserved()
}

func (r *resolver) found(at document.Path, message, hint string) { r.refuse(true, at, message, hint) }

// objectValue is nil for what is no object.
func objectValue(data []byte) any {
	if object := objectOf(data); object != nil {
		return object
	}
	return nil
}

// operation is one of RFC 6902.
type operation struct {
	Op    string          `json:"op"`
	Path  *string         `json:"path"`
	Value json.RawMessage `json:"value"`
}

// operations inspects a patch of operations. One that kubeadm cannot apply ends it.
func (r *resolver) operations(at document.Path, all []operation, target string, i inspection) {
	for n, o := range all {
		which := fmt.Sprintf("the operation %d ", n+1)
		if r.refuse(!slices.Contains([]string{"add", "remove", "replace", "move", "copy", "test"}, o.Op), at, which+"has no valid op", "use add, remove or replace") ||
			r.refuse(o.Path == nil || *o.Path != "" && !strings.HasPrefix(*o.Path, "/"), at, which+"has no path that begins with /", "write it like /metadata/labels/a") ||
			target != "kubeletconfiguration" || *o.Path == "" {
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
	}
}

// together finds fields of the kubelet that do not go together.
type together struct {
	r *resolver
	k map[string]any
}

// clash refuses fields that do not go together. What a patch changes is not known here, nor what a cluster says that the node joins: then it
// warns.
func (t together) clash(bad bool, message, hint string, fields ...string) {
	if !bad || slices.ContainsFunc(fields, t.r.patched) {
		return
	}
	at := document.Path("spec.kubelet.config").Field(fields[0])
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
	t.clash(t.k["systemCgroups"] != nil && t.k["cgroupRoot"] == nil, "needs cgroupRoot", "set cgroupRoot as well", "systemCgroups", "cgroupRoot")
	t.clash(t.k["enableSystemLogQuery"] == true && t.k["enableSystemLogHandler"] == false, "needs enableSystemLogHandler", "remove one of the two", "enableSystemLogQuery", "enableSystemLogHandler")
	logging, _ := t.k["logging"].(map[string]any)
	t.clash(logging["format"] == "json" && logging["vmodule"] != nil, "has vmodule, which is for the format text", "remove one of the two", "logging")
	images, policy := "preloadedImagesVerificationAllowlist", "imagePullCredentialsVerificationPolicy"
	t.clash(t.k[images] != nil && t.k[policy] != "NeverVerifyAllowlistedImages", "needs "+policy+": NeverVerifyAllowlistedImages", "set it as well", images, policy)
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
