package settings

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestArguments: an argument that the version of the document does not have, a value that the program cannot read, and arguments that exclude
// each other or contradict a field of the document are errors.
func TestArguments(t *testing.T) {
	t.Parallel()
	const dual = "cluster: {podSubnets: [10.244.0.0/16, 'fd00:1::/48'], serviceSubnets: [10.96.0.0/16, 'fd00:2::/112']}\n"
	of := func(component string, args ...string) string {
		var all []string
		for i := 0; i < len(args); i += 2 {
			all = append(all, "{name: "+args[i]+", value: '"+args[i+1]+"'}")
		}
		return component + ": {args: [" + strings.Join(all, ", ") + "]}\n"
	}
	server := func(args ...string) string { return of("apiServer", args...) }
	manager := func(args ...string) string { return of("controllerManager", args...) }
	etcd := func(args ...string) string {
		return "etcd: {local: " + strings.TrimPrefix(of("", args...), ": ") + "}\n"
	}
	variable := func(name, value string) string {
		return "etcd: {local: {env: [{name: " + name + ", value: '" + value + "'}]}}\n"
	}
	kubelet := func(name, value string) string {
		return workerSpec + "node: {kubeletArgs: [{name: " + name + ", value: '" + value + "'}]}\n"
	}
	at := func(version, text string) string {
		return "role: controlPlaneInit\nkubernetesVersion: " + version + "\n" + text
	}
	for text, want := range map[string]string{
		// versions
		at("v1.36.1", server("cloud-provider", "external")):                                                   "error spec.apiServer.args[0].name: is an argument of kube-apiserver until Kubernetes 1.32, and a later one does not start with it",
		at("v1.32.1", server("cloud-provider", "external")):                                                   "",
		at("v1.30.4", server("storage-initialization-timeout", "2m")):                                         "error spec.apiServer.args[0].name: is an argument of kube-apiserver from Kubernetes 1.31 on, and an earlier one",
		at("v1.36.1", "apiServer: {image: a.example.com/b, args: [{name: cloud-provider, value: external}]}"): "",
		at("v1.37.1", etcd("experimental-initial-corrupt-check", "true")):                                     "error spec.etcd.local.args[0].name: is an argument of etcd until Kubernetes 1.36",
		at("v1.36.1", etcd("experimental-initial-corrupt-check", "true")):                                     "",
		at("v1.36.1", etcd("enable-v2", "true")):                                                              "error spec.etcd.local.args[0].name: is an argument of etcd until Kubernetes 1.33",
		at("v1.36.1", "etcd: {local: {image: {tag: 3.5.24-0}, args: [{name: enable-v2, value: 'true'}]}}"):    "",
		kubelet("pod-infra-container-image", "a/b"):                                                           "warning spec.node.kubeletArgs[0].name: is an argument of kubelet until Kubernetes 1.34",
		kubelet("keep-terminated-pod-volumes", "true"):                                                        "error spec.node.kubeletArgs[0].name: is an argument of kubelet until Kubernetes 1.30",
		kubelet("image-credential-provider-config", "/etc/kubernetes/credentials.yaml"):                       "error spec.node.kubeletArgs[0].name: needs image-credential-provider-bin-dir",
		// values
		initSpec + server("event-ttl", "1d"):                     "error spec.apiServer.args[0].value: is not a value of this argument",
		initSpec + server("event-ttl", "24h"):                    "",
		initSpec + server("max-requests-inflight", "many"):       "error spec.apiServer.args[0].value: is not a value of this argument",
		initSpec + server("profiling", "no"):                     "error spec.apiServer.args[0].value: is not a value of this argument",
		initSpec + server("tls-min-version", "TLS1.2"):           "error spec.apiServer.args[0].value: is not a value of this argument",
		initSpec + server("goaway-chance", "1%"):                 "error spec.apiServer.args[0].value: is not a value of this argument",
		initSpec + server("external-hostname", "anything"):       "",
		initSpec + etcd("quota-backend-bytes", "8GB"):            "error spec.etcd.local.args[0].value: is not a value of this argument",
		initSpec + etcd("quota-backend-bytes", "8589934592"):     "",
		initSpec + etcd("snapshot-count", "-1"):                  "error spec.etcd.local.args[0].value: is not a value of this argument",
		initSpec + etcd("auto-compaction-mode", "hourly"):        "error spec.etcd.local.args[0].value: is not a value of this argument",
		initSpec + manager("node-monitor-grace-period", "40"):    "error spec.controllerManager.args[0].value: is not a value of this argument",
		initSpec + manager("concurrent-deployment-syncs", "5.5"): "error spec.controllerManager.args[0].value: is not a value of this argument",
		initSpec + of("scheduler", "kube-api-qps", "fast"):       "error spec.scheduler.args[0].value: is not a value of this argument",
		initSpec + of("scheduler", "bind-address", "localhost"):  "error spec.scheduler.args[0].value: is not an IP address",
		kubelet("node-status-update-frequency", "10"):            "error spec.node.kubeletArgs[0].value: is not a value of this argument",
		kubelet("v", "4"):                  "",
		kubelet("v", "debug"):              "error spec.node.kubeletArgs[0].value: is not a value of this argument",
		kubelet("cluster-dns", "10.0.0.1"): "",
		// values that a component reads and then refuses
		initSpec + of("scheduler", "secure-port", "-1"):                                                                             "error spec.scheduler.args[0].value: must be from 0 to 65535",
		initSpec + server("goaway-chance", "0.5"):                                                                                   "error spec.apiServer.args[0].value: must be from 0 to 0.02",
		initSpec + server("goaway-chance", "0.001"):                                                                                 "",
		initSpec + server("max-requests-inflight", "-1"):                                                                            "error spec.apiServer.args[0].value: must be from 0",
		initSpec + server("storage-media-type", "application/protobuf"):                                                             "error spec.apiServer.args[0].value: is not a value of this argument",
		initSpec + server("endpoint-reconciler-type", "leases"):                                                                     "error spec.apiServer.args[0].value: is not a value of this argument",
		initSpec + server("external-hostname", "api.example.com:6443"):                                                              "error spec.apiServer.args[0].value: is not a value of this argument",
		initSpec + server("etcd-prefix", "registry"):                                                                                "",
		initSpec + server("audit-log-path", "-", "audit-log-version", "v1", "audit-policy-file", "/etc/kubernetes/pki/policy.yaml"): "error spec.apiServer.args[1].value: is not a value of this argument",
		initSpec + server("audit-policy-file", "/etc/kubernetes/pki/policy.yaml"):                                                   "warning spec.apiServer.args[0].name: has no effect without audit-log-path or audit-webhook-config-file",
		initSpec + server("client-ca-file", "pki/ca.crt"):                                                                           "error spec.apiServer.args[0].value: is not a value of this argument",
		initSpec + manager("controllers", "*,-nodelifecycle"):                                                                       "warning spec.controllerManager.args[0].value: replaces the list of kubeadm",
		initSpec + manager("cidr-allocator-type", "RangeAllocater"):                                                                 "error spec.controllerManager.args[0].value: is not a value of this argument",
		initSpec + etcd("name", "node-1"):                                                                                           "error spec.etcd.local.args[0].name: is set by kubeadm",
		initSpec + etcd("tls-min-version", "VersionTLS12"):                                                                          "error spec.etcd.local.args[0].value: is not a value of this argument",
		initSpec + etcd("tls-min-version", "TLS1.2"):                                                                                "",
		initSpec + etcd("max-concurrent-streams", "many"):                                                                           "error spec.etcd.local.args[0].value: must be from 0",
		initSpec + etcd("log-rotation-config-json", "{maxsize: 100}"):                                                               "error spec.etcd.local.args[0].value: is not a value of this argument",
		initSpec + etcd("log-rotation-config-json", `{"maxsize": 100, "compress": false}`):                                          "",
		initSpec + etcd("host-whitelist", "a.example.com, b.example.com"):                                                           "error spec.etcd.local.args[0].value: has an empty item",
		kubelet("vmodule", "kubelet"):                                                                                               "error spec.node.kubeletArgs[0].value: is not a value of this argument",
		kubelet("cluster-dns", "10.96.0.10;8.8.8.8"):                                                                                "error spec.node.kubeletArgs[0].value: item 1 is not one",
		kubelet("reserved-cpus", "0-1,a"):                                                                                           "error spec.node.kubeletArgs[0].value: is not a value of this argument",
		kubelet("manifest-url", "example.com/pod.yaml"):                                                                             "error spec.node.kubeletArgs[0].value: is not a value of this argument",
		kubelet("resolv-conf", "etc/resolv.conf"):                                                                                   "error spec.node.kubeletArgs[0].value: is not a value of this argument",
		kubelet("resolv-conf", ""):                                                                                                  "",
		initSpec + server("cors-allowed-origins", "*"):                                                                              "error spec.apiServer.args[0].value: item 1 is not one",
		initSpec + server("cors-allowed-origins", `^https://a\.example\.com$`):                                                      "",
		initSpec + server("strict-transport-security-directives", "maxage=1"):                                                       "error spec.apiServer.args[0].value: item 1 is not one",
		initSpec + server("strict-transport-security-directives", "max-age=300"):                                                    "",
		initSpec + etcd("auto-compaction-retention", "8hours"):                                                                      "error spec.etcd.local.args[0].value: is not a value of this argument",
		initSpec + etcd("auto-compaction-retention", "8h"):                                                                          "",
		initSpec + etcd("auto-compaction-retention", "8"):                                                                           "",
		initSpec + etcd("metrics", "full"):                                                                                          "error spec.etcd.local.args[0].value: is not a value of this argument",
		initSpec + etcd("initial-cluster", "a=https://192.0.2.1:2380"):                                                              "error spec.etcd.local.args[0].name: is set by kubeadm",
		initSpec + server("oidc-issuer-url", "https://a", "oidc-client-id", "a", "oidc-required-claim", "hd"):                       "error spec.apiServer.args[2].value: item 1 is not one",
		initSpec + server("oidc-issuer-url", "https://a", "oidc-client-id", "a", "oidc-required-claim", "hd=a,b=c"):                 "",
		initSpec + server("oidc-issuer-url", "https://a", "oidc-client-id", "a", "oidc-signing-algs", "RS265"):                      "error spec.apiServer.args[2].value: item 1 is not one",
		initSpec + server("cors-allowed-origins", "https://a.example.com"):                                                          "",
		initSpec + server("cors-allowed-origins", "a.example.com"):                                                                  "error spec.apiServer.args[0].value: item 1 is not one",
		initSpec + server("watch-cache-sizes", "pods=100"):                                                                          "error spec.apiServer.args[0].value: item 1 is not one",
		initSpec + server("watch-cache-sizes", "pods#100,deployments.apps#50"):                                                      "",
		initSpec + server("kubelet-preferred-address-types", "internalIP"):                                                          "error spec.apiServer.args[0].value: item 1 is not one",
		initSpec + server("kubelet-preferred-address-types", "InternalIP,Hostname"):                                                 "",
		initSpec + server("service-account-issuer", "https://a b"):                                                                  "error spec.apiServer.args[0].value: is not a value of this argument",
		initSpec + server("service-account-issuer", "api"):                                                                          "",
		initSpec + server("runtime-config", "batch/v2alpha1=yes"):                                                                   "error spec.apiServer.args[0].value: item 1 is not one",
		initSpec + server("runtime-config", "batch/v1,batch/v2alpha1=true"):                                                         "error spec.apiServer.args[0].value: item 2 is not one",
		initSpec + server("runtime-config", "btach/v1=true"):                                                                        "error spec.apiServer.args[0].value: item 1 is not one",
		initSpec + server("runtime-config", "v1=true"):                                                                              "error spec.apiServer.args[0].value: item 1 is not one",
		initSpec + server("runtime-config", "api/legacy=true"):                                                                      "error spec.apiServer.args[0].value: item 1 is not one",
		initSpec + server("runtime-config", "apps/v1/Deployments=true"):                                                             "error spec.apiServer.args[0].value: item 1 is not one",
		initSpec + server("runtime-config", "api/all=false"):                                                                        "error spec.apiServer.args[0].value: leaves no interface",
		initSpec + server("runtime-config", "api/all=false, /v1=true,apps/v1/deployments=false"):                                    "",
		initSpec + server("runtime-config", "scheduling.k8s.io/v1alpha1=true"):                                                      "error spec.apiServer.args[0].value: item 1 is not one",
		initSpec + server("runtime-config", "api/all=true,resource.k8s.io/v1"):                                                      "",
		initSpec + server("service-account-max-token-expiration", "30m"):                                                            "error spec.apiServer.args[0].value: must be from 3600",
		initSpec + server("service-account-max-token-expiration", "24h"):                                                            "",
		initSpec + server("shutdown-delay-duration", "-5s"):                                                                         "error spec.apiServer.args[0].value: must be from 0",
		initSpec + server("shutdown-delay-duration", "0s"):                                                                          "",
		initSpec + of("scheduler", "leader-elect-resource-lock", "endpoints"):                                                       "error spec.scheduler.args[0].value: is not a value of this argument",
		initSpec + manager("leader-elect-lease-duration", "10s"):                                                                    "error spec.controllerManager.args[0].value: leaves leader-elect-lease-duration",
		initSpec + manager("leader-elect-lease-duration", "30s", "leader-elect-renew-deadline", "20s"):                              "",
		initSpec + of("scheduler", "leader-elect-retry-period", "9s"):                                                               "error spec.scheduler.args[0].value: leaves",
		kubelet("system-reserved", "cpu=1core"):                                                                                     "error spec.node.kubeletArgs[0].value: item 1 is not one",
		kubelet("kube-reserved", "cpu:100m"):                                                                                        "error spec.node.kubeletArgs[0].value: item 1 is not one",
		kubelet("kube-reserved", "cpu=100m,memory=0.5Gi,pid=1000"):                                                                  "",
		kubelet("cgroup-driver", "Systemd"):                                                                                         "error spec.node.kubeletArgs[0].value: is not a value of this argument",
		kubelet("topology-manager-policy", "numa"):                                                                                  "error spec.node.kubeletArgs[0].value: is not a value of this field",
		kubelet("container-log-max-size", "10MB"):                                                                                   "error spec.node.kubeletArgs[0].value: is not a value of this field",
		kubelet("container-log-max-files", "1"):                                                                                     "error spec.node.kubeletArgs[0].value: must be at least 2",
		kubelet("image-gc-low-threshold", "120"):                                                                                    "error spec.node.kubeletArgs[0].value: must be from 0 to 100",
		kubelet("allowed-unsafe-sysctls", "net.core.somaxconn,kernel.msg*"):                                                         "",
		kubelet("eviction-minimum-reclaim", "memory.available=1Gi"):                                                                 "",
		initSpec + server("encryption-provider-config-automatic-reload", "true"):                                                    "error spec.apiServer.args[0].name: needs encryption-provider-config",
		kubelet("eviction-minimum-reclaim", "memory.available<1Gi"):                                                                 "error spec.node.kubeletArgs[0].value: is not a value of this argument",
		workerSpec + "kubelet: {config: {clusterDomain: .cluster.local}}":                                                           "error spec.kubelet.config.clusterDomain: is not a value of this field",
		workerSpec + "kubelet: {config: {podCIDR: 10.244.0.0}}":                                                                     "error spec.kubelet.config.podCIDR: is not a value of this field",
		// names, lists and URLs
		initSpec + server("service-account-signing-key", "/a"):                                       "error spec.apiServer.args[0].name: is no argument of kube-apiserver",
		initSpec + server("audit_log_path", "/a"):                                                    "error spec.apiServer.args[0].name: is no argument of kube-apiserver",
		initSpec + manager("audit-log-path", "/a"):                                                   "error spec.controllerManager.args[0].name: is no argument of kube-controller-manager",
		initSpec + of("scheduler", "kube-api-qps", "50", "kube-api-qps", "100"):                      "error spec.scheduler.args[0].name: is there twice",
		initSpec + server("service-account-issuer", "https://a", "service-account-issuer", "b"):      "",
		initSpec + server("enable-admission-plugins", "NodeRestriction,AlwaysPullImages"):            "",
		initSpec + server("enable-admission-plugins", "NodeRestriction, AlwaysPullImages"):           "error spec.apiServer.args[0].value: has an empty item, or a blank beside a comma",
		initSpec + server("enable-admission-plugins", "NodeRestricton"):                              "error spec.apiServer.args[0].value: item 1 is not one",
		initSpec + server("tls-cipher-suites", "ECDHE-RSA-AES128-GCM-SHA256"):                        "error spec.apiServer.args[0].value: item 1 is not one",
		initSpec + server("tls-cipher-suites", "TLS_AES_128_GCM_SHA256"):                             "error spec.apiServer.args[0].value: has neither of the cipher suites",
		initSpec + server("authorization-mode", "Node,RBACK"):                                        "error spec.apiServer.args[0].value: is not a value of this field",
		initSpec + etcd("cipher-suites", "AES256"):                                                   "error spec.etcd.local.args[0].value: item 1 is not one",
		initSpec + etcd("listen-metrics-urls", "0.0.0.0:2381"):                                       "error spec.etcd.local.args[0].value: item 1 is not one",
		initSpec + etcd("listen-metrics-urls", "http://127.0.0.1:2381,http://10.0.0.5:2381"):         "",
		initSpec + "cluster: {podSubnets: [10.244.0.0/16]}\n" + manager("node-cidr-mask-size", "12"): "error spec.controllerManager.args[0].value: is not between 16",
		initSpec + "cluster: {podSubnets: [10.244.0.0/16]}\n" + manager("node-cidr-mask-size", "25"): "",
		initSpec + manager("controllers", "*,bootstrapsigner,-token-cleaner-controller"):             "",
		initSpec + manager("controllers", "*,bootstrapsigner,tokencleanerr"):                         "error spec.controllerManager.args[0].value: item 3 is no controller of Kubernetes 1.37",
		initSpec + manager("controllers", "-*"):                                                      "error spec.controllerManager.args[0].value: item 1 is no controller",
		at("v1.37.1", manager("controllers", "*,-service-lb-controller")):                            "error spec.controllerManager.args[0].value: item 2 is no controller of Kubernetes 1.37",
		at("v1.30.4", manager("controllers", "*,selinux-warning-controller")):                        "error spec.controllerManager.args[0].value: item 2 is no controller of Kubernetes 1.30",
		// fields
		initSpec + server("service-cluster-ip-range", "10.1.0.0/16"):                                                                        "error spec.apiServer.args[0].value: contradicts spec.cluster.serviceSubnets",
		initSpec + server("service-cluster-ip-range", "10.96.0.0/12"):                                                                       "",
		initSpec + server("secure-port", "443"):                                                                                             "error spec.apiServer.args[0].value: contradicts spec.node.advertisePort",
		initSpec + "node: {advertisePort: 443}\n" + server("secure-port", "443"):                                                            "",
		initSpec + "cluster: {podSubnets: [10.244.0.0/16]}\n" + manager("cluster-cidr", "10.1.0.0/16"):                                      "error spec.controllerManager.args[0].value: contradicts spec.cluster.podSubnets",
		initSpec + manager("cluster-cidr", "10.1.0.0/16"):                                                                                   "",
		initSpec + etcd("data-dir", "/data"):                                                                                                "error spec.etcd.local.args[0].value: contradicts spec.etcd.local.dataDir",
		workerSpec + "kubelet: {maxPods: 110}\nnode: {kubeletArgs: [{name: max-pods, value: '250'}]}":                                       "error spec.node.kubeletArgs[0].value: contradicts spec.kubelet.maxPods",
		workerSpec + "kubelet: {config: {serializeImagePulls: true}}\nnode: {kubeletArgs: [{name: serialize-image-pulls, value: 'false'}]}": "error spec.node.kubeletArgs[0].value: contradicts spec.kubelet.config.serializeImagePulls",
		workerSpec + "kubelet: {maxPods: 110}\nnode: {kubeletArgs: [{name: max-pods, value: '110'}]}":                                       "",
		// pairs
		initSpec + server("oidc-issuer-url", "https://idp.example.com"):                                                   "error spec.apiServer.args[0].name: needs oidc-client-id",
		initSpec + server("oidc-client-id", "a"):                                                                          "error spec.apiServer.args[0].name: needs oidc-issuer-url",
		initSpec + server("oidc-issuer-url", "https://idp.example.com", "oidc-client-id", "a"):                            "",
		initSpec + server("anonymous-auth", "false"):                                                                      "error spec.apiServer.args[0].value: makes the probes of the API server fail",
		initSpec + server("anonymous-auth", "true"):                                                                       "",
		initSpec + server("authorization-mode", "RBAC"):                                                                   "error spec.apiServer.args[0].value: gives kubelets no rights",
		initSpec + server("authorization-mode", "Node,RBAC"):                                                              "",
		initSpec + server("enable-admission-plugins", "AlwaysPullImages"):                                                 "warning spec.apiServer.args[0].value: replaces the list of kubeadm",
		initSpec + server("enable-admission-plugins", "AlwaysPullImages", "disable-admission-plugins", "NodeRestriction"): "",
		initSpec + server("bind-address", "127.0.0.1"):                                                                    "warning spec.apiServer.args[0].value: is an address of this machine alone",
		initSpec + server("service-node-port-range", "1-70000"):                                                           "error spec.apiServer.args[0].value: is not a range of ports",
		initSpec + server("service-node-port-range", "1-65535"):                                                           "warning spec.apiServer.args[0].value: has port 6443",
		initSpec + server("service-node-port-range", "80-32767"):                                                          "warning spec.apiServer.args[0].value: has port 6443",
		initSpec + server("service-node-port-range", "30000+1000"):                                                        "",
		initSpec + dual + manager("node-cidr-mask-size", "24"):                                                            "error spec.controllerManager.args[0].name: is for pods of one family",
		initSpec + dual + manager("node-cidr-mask-size-ipv4", "24", "node-cidr-mask-size-ipv6", "64"):                     "",
		initSpec + "cluster: {podSubnets: [10.244.0.0/16]}\n" + manager("node-cidr-mask-size-ipv6", "64"):                 "error spec.controllerManager.args[0].name: is for a family that spec.cluster.podSubnets does not have",
		initSpec + variable("ETCD_NAME", "a"):                                                                             "error spec.etcd.local.env[0].name: is name, which the command line of etcd has as well, and etcd does not start with both",
		initSpec + variable("ETCD_LISTEN_CLIENT_URLS", "http://[::]:1"):                                                   "error spec.etcd.local.env[0].name: is listen-client-urls, which",
		initSpec + variable("ETCD_QUOTA_BACKEND_BYTES", "8GB"):                                                            "error spec.etcd.local.env[0].value: is not a value of this argument, and the component does not start",
		initSpec + variable("ETCD_QUOTA_BACKEND_BYTES", "8589934592"):                                                     "",
		initSpec + variable("ETCD_QUOTA_BYTES", "8589934592"):                                                             "warning spec.etcd.local.env[0].name: is none of the variables that this etcd reads, and has no effect",
		initSpec + variable("GOMEMLIMIT", "2GiB"):                                                                         "",
		initSpec + etcd("heartbeat-interval", "1000", "election-timeout", "2000"):                                         "error spec.etcd.local.args[1].value: leaves election-timeout",
		initSpec + etcd("heartbeat-interval", "250"):                                                                      "error spec.etcd.local.args[0].value: leaves election-timeout",
		initSpec + etcd("heartbeat-interval", "250", "election-timeout", "2500"):                                          "",
		initSpec + etcd("election-timeout", "60000"):                                                                      "error spec.etcd.local.args[0].value: is more than the 50,000 ms",
	} {
		said(t, text, want)
	}
}

// TestCommandLines: a program of the version of the document takes its command line, or the document is refused.
func TestCommandLines(t *testing.T) {
	t.Parallel()
	fields := map[string]string{
		"kubelet": "node: {kubeletArgs: %s}", "etcd": "etcd: {local: {args: %s}}", "kube-apiserver": "apiServer: {args: %s}",
		"kube-controller-manager": "controllerManager: {args: %s}", "kube-scheduler": "scheduler: {args: %s}",
	}
	for _, file := range []string{"testdata/arguments.txt", "testdata/values.txt"} {
		table, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line)
			if f[0] == "#" {
				continue
			}
			var args []string
			for _, arg := range f[2:] {
				name, value, _ := strings.Cut(arg, "=")
				args = append(args, "{name: "+name+", value: '"+value+"'}")
			}
			text := "role: controlPlaneInit\nkubernetesVersion: v1.36.1\n" + fmt.Sprintf(fields[f[1]], "["+strings.Join(args, ", ")+"]")
			s, violations, err := spec(t, text)
			require.NoError(t, err, line)
			said := len(violations) > 0 || len(s.Warnings) > 0 // a kubelet may be of an older version
			assert.Equal(t, f[0] == "no", said, "%s%v%v", line, violations, s.Warnings)
		}
	}
}

// TestEveryTextHasAForm: the value of an argument that its type leaves free has a form, or the table says that it is free.
func TestEveryTextHasAForm(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(argumentTable) {
		f := strings.Fields(line)
		if f[0] != "#" && (f[2] == "text" || f[2] == "list") {
			_, known := formOf(f[0], f[1])
			assert.True(t, known, line)
		}
	}
}
