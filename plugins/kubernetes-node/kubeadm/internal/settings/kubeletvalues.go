package settings

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/internal/lazyregexp"
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
	return threshold().MatchString(text) && (percentage && value <= 100 || !percentage && (err != nil || value > 0))
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
	cpus          = lazyregexp.New(`^(?:[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*)?$`)
	hiddenVersion = lazyregexp.New(`^(?:[0-9]+\.[0-9]+)?$`)
	logsPath      = lazyregexp.New(`^(?:(?:/\.{0,2}[!--0-~ ][!-.0-~ ]*)+|[A-Za-z]:\\[ -~]+)?$`)
	clusterDomain = lazyregexp.New(`^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?\.?)?$`)
	podNetworks   = lazyregexp.New(`^(?:[0-9A-Fa-f.:]+/[0-9]+(?:,|$))*$`)
	endpoint      = lazyregexp.New(`^(?:(?:dns|unix|unix-abstract)://?\S+|[^\s/]*)$`)
	truth         = lazyregexp.New(`^(?:[01tTfF]|true|TRUE|True|false|FALSE|False)$`)
	percentage    = lazyregexp.New(`^(?:100|[0-9]{1,2})%$`)
	webAddress    = lazyregexp.New(`^(?:https?://\S+)?$`)
	namespaced    = lazyregexp.New(`^(?:kernel[./](?:shm|msg|sem)|fs[./]mqueue[./]|net[./]|user[./])[-_./a-z0-9]*\*?$`)
)

func kubeletForms() map[string]func() *regexp.Regexp {
	return map[string]func() *regexp.Regexp{
		"reservedSystemCPUs": cpus, "showHiddenMetricsForVersion": hiddenVersion, "podLogsDir": logsPath, "tracing.endpoint": endpoint,
		"clusterDomain": clusterDomain, "podCIDR": podNetworks, "containerLogMaxSize": quantity, "evictionMinimumReclaim{}": threshold, "allowedUnsafeSysctls[]": namespaced,
		"cpuManagerPolicyOptions{}": truth, "qosReserved{}": percentage, "staticPodURL": webAddress,
	}
}

// kubeletChoices are the values of fields that have few. Sources: ValidateKubeletConfiguration, and what reads the field: pkg/kubelet/cm,
// cmd/kubelet/app/auth.go, pkg/kubelet/kubelet.go and component-base/cli/flag.
func kubeletChoices() map[string][]string {
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
		"topologyManagerPolicyOptions{key}":         {"prefer-closest-numa-nodes", "max-allowable-numa-nodes"},
		"cpuManagerPolicyOptions{key}": strings.Fields("full-pcpus-only distribute-cpus-across-numa align-by-socket distribute-cpus-across-cores strict-cpu-reservation " +
			"prefer-align-cpus-by-uncorecache"),
		"tlsMinVersion":            {"VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"},
		"tlsCipherSuites[]":        cipherSuites(),
		"memoryReservationPolicy":  {"None", "TieredReservation"},
		"enforceNodeAllocatable[]": {"pods", "system-reserved", "kube-reserved", "system-reserved-compressible", "kube-reserved-compressible", "none"},
		"evictionHard{key}":        signals(), "evictionSoft{key}": signals(), "evictionSoftGracePeriod{key}": signals(), "evictionMinimumReclaim{key}": signals(),
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
	if form := kubeletForms()[path]; form != nil && !form().MatchString(text) || path == "reservedSystemCPUs" && reversed(text) {
		return "is not a value of this field", "see the reference of KubeletConfiguration"
	}
	ip, err := netip.ParseAddr(text)
	period, notPeriod := time.ParseDuration(text)
	number, _ := strconv.ParseInt(fmt.Sprint(value), 10, 64)
	switch {
	case notPeriod == nil && period < 0:
		return "must not be below 0s", ""
	case path == "runOnce" && value == true:
		return "makes the kubelet end", "remove it"
	case (path == "clusterDNS[]" || path == "address" || path == "healthzBindAddress") && text != "" && (err != nil || ip.Zone() != ""):
		return "is not an IP address", ""
	case strings.HasPrefix(path, "shutdownGracePeriod") && (period < 0 || period > 0 && period < time.Second):
		return "must be 0s or at least 1s", ""
	case path == "evictionSoftGracePeriod{}" && notPeriod != nil, path == "logging.flushFrequency" && text != "" && notPeriod != nil:
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

// cipherSuites are the names that components of Kubernetes and etcd take.
func cipherSuites() []string {
	names := []string{"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"} // former names
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		names = append(names, suite.Name)
	}
	return names
}
