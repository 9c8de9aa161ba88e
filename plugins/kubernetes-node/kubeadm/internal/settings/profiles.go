package settings

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// Rule is a rule of a benchmark that a profile takes up.
type Rule struct {
	// Profile and ID identify the rule.
	Profile, ID string
	// Target is apiServer, controllerManager, scheduler or etcd for an argument, kubelet or kubeProxy for a field of their
	// configuration, file for a mode, or "host name".
	Target string
	// Name is the argument, the path of the field or the file.
	Name string
	// Value is an argument, a value in JSON, or a mode. null removes the field.
	Value string
	// Others are further values that the rule accepts.
	Others []string
	// Flag is the argument of the kubelet that would override the field.
	Flag string
	// Meaning says what the setting does.
	Meaning string
}

// The profiles.
const (
	DISA = "disa-k8s-v2r6"
	CIS  = "cis-1.11"
)

const (
	gcmCiphers = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256," +
		"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
	kubeletConfig = "/var/lib/kubelet/config.yaml"
)

// Rules returns every rule of every profile. Sources: DISA, Kubernetes STIG Version 2 Release 6; CIS Kubernetes Benchmark
// 1.11.
func Rules() []Rule {
	tls := []string{"VersionTLS13"}
	list := `["` + strings.ReplaceAll(gcmCiphers, ",", `","`) + `"]`
	return []Rule{
		{DISA, "CNTR-K8-000150", "controllerManager", "tls-min-version", "VersionTLS12", tls, "", "the controller manager serves TLS 1.2 or later"},
		{DISA, "CNTR-K8-000160", "scheduler", "tls-min-version", "VersionTLS12", tls, "", "the scheduler serves TLS 1.2 or later"},
		{DISA, "CNTR-K8-000170", "apiServer", "tls-min-version", "VersionTLS12", tls, "", "the API server serves TLS 1.2 or later"},
		{DISA, "CNTR-K8-000180", "etcd", "auto-tls", "false", nil, "", "etcd does not make certificates for clients by itself"},
		{DISA, "CNTR-K8-000190", "etcd", "peer-auto-tls", "false", nil, "", "etcd does not make certificates for peers by itself"},
		{DISA, "CNTR-K8-000220", "controllerManager", "use-service-account-credentials", "true", nil, "", "each controller has a service account"},
		{DISA, "CNTR-K8-000270", "apiServer", "authorization-mode", "Node,RBAC", nil, "", "requests are authorized by Node and RBAC"},
		{DISA, "CNTR-K8-000300", "scheduler", "bind-address", "127.0.0.1", nil, "", "the scheduler serves the machine only"},
		{DISA, "CNTR-K8-000310", "controllerManager", "bind-address", "127.0.0.1", nil, "", "the controller manager serves the machine only"},
		{DISA, "CNTR-K8-000330", "kubelet", "readOnlyPort", "0", nil, "read-only-port", "the kubelet has no port without authentication"},
		{DISA, "CNTR-K8-000370", "kubelet", "authentication.anonymous.enabled", "false", nil, "anonymous-auth", "the kubelet refuses anonymous requests"},
		{DISA, "CNTR-K8-000380", "kubelet", "authorization.mode", `"Webhook"`, nil, "authorization-mode", "the kubelet asks the API server for authorization"},
		{DISA, "CNTR-K8-000440", "kubelet", "staticPodPath", "null", nil, "pod-manifest-path", "the kubelet of a worker runs no static pods"},
		{DISA, "CNTR-K8-000850", "host name", "hostname-override", "", nil, "", "the node has the name of the host"},
		{DISA, "CNTR-K8-000910", "controllerManager", "profiling", "false", nil, "", "the controller manager serves no profiles"},
		{DISA, "CNTR-K8-001300", "kubelet", "streamingConnectionIdleTimeout", `"5m"`, []string{`"5m0s"`}, "streaming-connection-idle-timeout", "idle streams end after 5 minutes"},
		{DISA, "CNTR-K8-001400", "apiServer", "tls-cipher-suites", gcmCiphers, nil, "", "the API server offers these cipher suites for TLS 1.2"},
		{DISA, "CNTR-K8-001450", "etcd", "client-cert-auth", "true", nil, "", "etcd demands certificates of clients"},
		{DISA, "CNTR-K8-001480", "etcd", "peer-client-cert-auth", "true", nil, "", "etcd demands certificates of peers"},
		{DISA, "CNTR-K8-001620", "kubelet", "protectKernelDefaults", "true", nil, "protect-kernel-defaults", "the kubelet ends if sysctls differ from what it requires"},
		{CIS, "1.2.6 to 1.2.8", "apiServer", "authorization-mode", "Node,RBAC", nil, "", "requests are authorized by Node and RBAC"},
		{CIS, "1.2.15", "apiServer", "profiling", "false", nil, "", "the API server serves no profiles"},
		{CIS, "1.2.30", "apiServer", "service-account-extend-token-expiration", "false", nil, "", "tokens of service accounts expire as requested"},
		{CIS, "1.3.2", "controllerManager", "profiling", "false", nil, "", "the controller manager serves no profiles"},
		{CIS, "1.3.3", "controllerManager", "use-service-account-credentials", "true", nil, "", "each controller has a service account"},
		{CIS, "1.3.7", "controllerManager", "bind-address", "127.0.0.1", nil, "", "the controller manager serves the machine only"},
		{CIS, "1.4.1", "scheduler", "profiling", "false", nil, "", "the scheduler serves no profiles"},
		{CIS, "1.4.2", "scheduler", "bind-address", "127.0.0.1", nil, "", "the scheduler serves the machine only"},
		{CIS, "2.2", "etcd", "client-cert-auth", "true", nil, "", "etcd demands certificates of clients"},
		{CIS, "2.3", "etcd", "auto-tls", "false", nil, "", "etcd does not make certificates for clients by itself"},
		{CIS, "2.5", "etcd", "peer-client-cert-auth", "true", nil, "", "etcd demands certificates of peers"},
		{CIS, "2.6", "etcd", "peer-auto-tls", "false", nil, "", "etcd does not make certificates for peers by itself"},
		{CIS, "4.1.9", "file", kubeletConfig, "0600", nil, "", "the configuration of the kubelet is closed to others"},
		{CIS, "4.2.1", "kubelet", "authentication.anonymous.enabled", "false", nil, "anonymous-auth", "the kubelet refuses anonymous requests"},
		{CIS, "4.2.2", "kubelet", "authorization.mode", `"Webhook"`, nil, "authorization-mode", "the kubelet asks the API server for authorization"},
		{CIS, "4.2.4", "kubelet", "readOnlyPort", "0", nil, "read-only-port", "the kubelet has no port without authentication"},
		{CIS, "4.2.5", "kubelet", "streamingConnectionIdleTimeout", `"5m"`, []string{`"5m0s"`}, "streaming-connection-idle-timeout", "idle streams end after 5 minutes"},
		{CIS, "4.2.6", "kubelet", "makeIPTablesUtilChains", "true", nil, "make-iptables-util-chains", "the kubelet keeps its iptables chains"},
		{CIS, "4.2.7", "host name", "hostname-override", "", nil, "", "the node has the name of the host"},
		{CIS, "4.2.10", "kubelet", "rotateCertificates", "true", nil, "rotate-certificates", "the kubelet renews its client certificate"},
		{CIS, "4.2.12", "kubelet", "tlsCipherSuites", list, nil, "tls-cipher-suites", "the kubelet offers these cipher suites for TLS 1.2"},
		{CIS, "4.2.14", "kubelet", "seccompDefault", "true", nil, "seccomp-default", "pods have the runtime's seccomp profile unless they ask for another"},
		{CIS, "4.3.1", "kubeProxy", "metricsBindAddress", `"127.0.0.1:10249"`, nil, "", "kube-proxy serves metrics to the machine only"},
	}
}

func rulesOf(profiles []string, which func(Rule) bool) []Rule {
	return slices.DeleteFunc(Rules(), func(r Rule) bool { return !slices.Contains(profiles, r.Profile) || !which(r) })
}

// WithHostName reports whether a profile demands that the node has the name of the host.
func (s Settings) WithHostName() bool {
	return len(rulesOf(s.Spec.Profiles, func(r Rule) bool { return r.Target == "host name" })) > 0
}

// profiles adds the settings of the profiles to the document's and refuses what contradicts them. The arguments of
// the control plane belong to the whole cluster, so that only controlPlaneInit sets them.
func (r *resolver) profiles() {
	known := map[string]document.Path{}
	for i, name := range r.spec.Profiles {
		at := document.Path("spec.profiles").Index(i)
		r.unique(at, known, name)
	}
	for _, rule := range rulesOf(r.spec.Profiles, func(Rule) bool { return true }) {
		switch rule.Target {
		case "kubelet":
			if rule.Value != "null" || r.spec.Role == Worker {
				r.kubeletRule(rule)
			}
		case "kubeProxy":
			if r.spec.Role == Init && (r.spec.KubeProxy == nil || !r.spec.KubeProxy.Skip) {
				r.field(rule, "spec.kubeProxy.config", r.result.KubeProxy)
			}
		case "file":
			if bits, err := strconv.ParseUint(rule.Value, 8, 12); err == nil && !r.result.Windows {
				r.result.Modes = append(r.result.Modes, Mode{Path: rule.Name, Mode: fs.FileMode(bits)})
			}
		case "apiServer", "controllerManager", "scheduler", "etcd":
			if r.spec.Role == Init {
				r.argumentRule(rule)
			}
		}
	}
}

// contradiction refuses a setting of the document other than the rule's.
func (r *resolver) contradiction(bad bool, field document.Path, rule Rule) {
	r.refuse(bad, field, "contradicts "+rule.ID+" of the profile "+rule.Profile, "remove it or the profile: the rule asks for "+rule.Name+" = "+rule.Value)
}

// argumentRule adds an argument to a component, unless the document has it.
func (r *resolver) argumentRule(rule Rule) {
	at := document.Path("spec").Field(rule.Target)
	var args *[]v1alpha1.Argument
	switch rule.Target {
	case "etcd":
		at += ".local"
		if r.spec.Etcd != nil && r.spec.Etcd.External != nil {
			return
		}
		local := v1alpha1.LocalEtcd{}
		if r.spec.Etcd != nil && r.spec.Etcd.Local != nil {
			local = *r.spec.Etcd.Local
		}
		r.spec.Etcd, args = &v1alpha1.Etcd{Local: &local}, &local.Args
	default:
		component := v1alpha1.ControlPlaneComponent{}
		into := map[string]**v1alpha1.ControlPlaneComponent{
			"apiServer": &r.spec.APIServer, "controllerManager": &r.spec.ControllerManager, "scheduler": &r.spec.Scheduler,
		}[rule.Target]
		if *into != nil {
			component = **into
		}
		*into, args = &component, &component.Args
	}
	found := false
	for i, a := range *args {
		if a.Name == rule.Name {
			found = true
			r.contradiction(a.Value != rule.Value && !slices.Contains(rule.Others, a.Value), (at + ".args").Index(i), rule)
		}
	}
	if !found {
		*args = append(slices.Clip(*args), v1alpha1.Argument{Name: rule.Name, Value: rule.Value})
	}
}

// kubeletRule sets a field, and refuses the argument and the patches of the document that would override it.
func (r *resolver) kubeletRule(rule Rule) {
	for i, a := range r.spec.Node.KubeletArgs {
		r.contradiction(a.Name == rule.Flag, document.Path("spec.node.kubeletArgs").Index(i), rule)
	}
	top, _, _ := strings.Cut(rule.Name, ".")
	for i, p := range r.spec.Patches {
		names := strings.Contains(p.Patch, `"`+top+`"`) || strings.Contains(p.Patch, `"/`+top)
		r.contradiction(p.Target == "kubeletconfiguration" && names, document.Path("spec.patches").Index(i)+".patch", rule)
	}
	at := document.Path("spec.kubelet.config")
	if hasField(v1alpha1.Kubelet{}, rule.Name) {
		at = "spec.kubelet"
	}
	r.field(rule, at, r.result.Kubelet)
}

// field sets a field of a configuration, unless the document has it.
func (r *resolver) field(rule Rule, at document.Path, object map[string]any) {
	steps := strings.Split(rule.Name, ".")
	for i, step := range steps {
		at = at.Field(step)
		value, there := object[step]
		switch {
		case i < len(steps)-1 && !there:
			object[step] = map[string]any{}
		case i < len(steps)-1:
		case there:
			data, err := json.Marshal(value)
			r.contradiction(err != nil || string(data) != rule.Value && !slices.Contains(rule.Others, string(data)), at, rule)
			return
		default:
			object[step] = valueOfJSON(rule.Value)
			return
		}
		inner, ok := object[step].(map[string]any)
		if !ok {
			r.contradiction(true, at, rule)
			return
		}
		object = inner
	}
}

func valueOfJSON(text string) any { return objectOf([]byte(`{"value":` + text + `}`))["value"] }
