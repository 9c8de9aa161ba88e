package settings

import (
	"math"
	"regexp"
)

// This file has the values of arguments that a component takes, as far as their type does not say it.

// argumentBounds are of numbers that a component reads and then refuses. Sources: Validate of the options of apiserver and of Kubernetes.
func argumentBounds() map[string]bounds {
	natural := bounds{0, math.MaxInt32}
	return map[string]bounds{
		"secure-port": {0, 65535}, "goaway-chance": {0, 0.02}, "max-requests-inflight": natural, "max-mutating-requests-inflight": natural,
		"min-request-timeout": natural, "audit-log-maxage": natural, "audit-log-maxbackup": natural, "audit-log-maxsize": natural,
		"request-timeout": natural, "storage-initialization-timeout": natural, "shutdown-delay-duration": natural, "livez-grace-period": natural,
		"shutdown-watch-termination-grace-period": natural, "service-account-max-token-expiration": {3600, 1 << 32},
		"image-gc-high-threshold": {0, 100}, "image-gc-low-threshold": {0, 100},
	}
}

// valueForm is the form of a text, and a hint for one that does not have it.
type valueForm struct {
	form *regexp.Regexp
	hint string
}

// argumentForms are of texts that a component reads in a form of its own. Sources: as of argumentBounds, and the embed package of etcd.
func argumentForms() map[string]valueForm {
	return map[string]valueForm{
		"oidc-required-claim":       {requiredClaims, "write it like CLAIM=VALUE"},
		"runtime-config":            {runtimeConfig, "write it like GROUP/VERSION=true"},
		"eviction-minimum-reclaim":  {regexp.MustCompile(`^[^<]*$`), "write it like memory.available=500Mi"},
		"system-reserved":           {reserved, "write it like cpu=500m,memory=1Gi"},
		"kube-reserved":             {reserved, "write it like cpu=500m,memory=1Gi"},
		"auto-compaction-retention": {retention, "write a number, or a duration like 8h"},
	}
}

// addressTypes are the types of a node's addresses. Source: k8s.io/api/core/v1.
const addressTypes = "Hostname InternalDNS InternalIP ExternalDNS ExternalIP"

var (
	pins           = regexp.MustCompile(`(?:\^|//).*[$:]|[$:].*(?:\^|//)`) // as the API server looks for them
	cacheSize      = regexp.MustCompile(`^[^#]+#[0-9]+$`)
	runtimeConfig  = regexp.MustCompile(`^(?:[^=,]+(?:=(?:[01tTfF]|true|TRUE|True|false|FALSE|False)?)?(?:,|$))*$`)
	reserved       = regexp.MustCompile(`^(?:(?:cpu|memory|ephemeral-storage|pid|hugepages-[0-9A-Za-z]+)=[0-9]+(?:\.[0-9]+)?(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?(?:,|$))*$`)
	stsDirective   = regexp.MustCompile(`^(?:max-age=[0-9]+|includeSubDomains|preload)$`)
	requiredClaims = regexp.MustCompile(`^(?:[^=,]+=[^,]*(?:,[^=,]+=[^,]*)*)?$`)
	retention      = regexp.MustCompile(`^(?:[0-9]+|(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h))+)?$`)
)

// admissionPlugins are the names of the admission plugins of Kubernetes 1.30 to 1.37. Source: pkg/kubeapiserver/options/plugins.go.
const admissionPlugins = "AlwaysAdmit NamespaceAutoProvision NamespaceLifecycle NamespaceExists LimitPodHardAntiAffinityTopology PodTopologyLabels LimitRanger ServiceAccount " +
	"NodeRestriction TaintNodesByCondition PodSecurity AlwaysPullImages ImagePolicyWebhook EventRateLimit ExtendedResourceToleration PodNodeSelector Priority " +
	"DefaultTolerationSeconds PodTolerationRestriction DefaultStorageClass StorageObjectInUseProtection OwnerReferencesPermissionEnforcement " +
	"PersistentVolumeClaimResize RuntimeClass CertificateApproval CertificateSigning ClusterTrustBundleAttest CertificateSubjectRestriction " +
	"DefaultIngressClass DenyServiceExternalIPs MutatingAdmissionPolicy MutatingAdmissionWebhook ValidatingAdmissionPolicy ValidatingAdmissionWebhook " +
	"ResourceQuota AlwaysDeny"

// etcdURLs are the arguments of etcd that are URLs with commas between them.
const etcdURLs = "listen-peer-urls listen-client-urls listen-client-http-urls listen-metrics-urls initial-advertise-peer-urls advertise-client-urls"

// argumentChoices are the values of arguments that have few. Sources: component-base/cli/flag, component-base/logs, apiserver/pkg/server/options
// and the embed package of etcd.
func argumentChoices() map[string][]string {
	return map[string][]string{
		"tls-min-version":            {"VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"},
		"cgroup-driver":              {"cgroupfs", "systemd"},
		"logging-format":             {"text", "json"},
		"audit-log-format":           {"json", "legacy"},
		"audit-log-mode":             {"batch", "blocking", "blocking-strict"},
		"audit-webhook-mode":         {"batch", "blocking", "blocking-strict"},
		"storage-backend":            {"etcd3"},
		"leader-elect-resource-lock": {"leases"},
		"storage-media-type":         {"application/json", "application/yaml", "application/vnd.kubernetes.protobuf"},
		"metrics":                    {"basic", "extensive"},
		"auto-compaction-mode":       {"periodic", "revision"},
		"logger":                     {"zap"},
		"log-level":                  {"debug", "info", "warn", "error", "dpanic", "panic", "fatal"},
		"initial-cluster-state":      {"new", "existing"},
	}
}
