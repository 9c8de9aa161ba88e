package settings

import "testing"

// TestEffects: what a component takes and what does harm has a word, and the right form of it has none.
func TestEffects(t *testing.T) {
	t.Parallel()
	arg := func(component, name, value string) string {
		if component == "etcd" {
			return initSpec + "etcd: {local: {args: [{name: " + name + ", value: '" + value + "'}]}}"
		}
		return initSpec + component + ": {args: [{name: " + name + ", value: '" + value + "'}]}"
	}
	kubelet := func(config string) string { return workerSpec + "kubelet: {config: {" + config + "}}" }
	file := func(path, content string) string {
		return workerSpec + "files: [{path: " + path + ", content: \"" + content + "\"}]"
	}
	const arguments, etcd = "spec.apiServer.args[0].value: ", "spec.etcd.local.args[0].value: "
	for text, want := range map[string]string{
		arg("apiServer", "enable-admission-plugins", "NodeRestriction,AlwaysDeny"):                                                               "error " + arguments + "refuses every request",
		arg("apiServer", "enable-admission-plugins", "NodeRestriction,ImagePolicyWebhook"):                                                       "error spec.apiServer.args[0]: ImagePolicyWebhook needs a configuration",
		arg("apiServer", "enable-admission-plugins", "NodeRestriction,EventRateLimit"):                                                           "error spec.apiServer.args[0]: EventRateLimit needs a configuration",
		arg("apiServer", "disable-admission-plugins", "ServiceAccount"):                                                                          "warning " + arguments + "leaves pods without a token",
		arg("apiServer", "allow-privileged", "false"):                                                                                            "warning " + arguments + "refuses the pods of kube-proxy",
		arg("apiServer", "allow-privileged", "true"):                                                                                             "",
		arg("apiServer", "client-ca-file", "/etc/ssl/certs/ca.crt"):                                                                              "warning " + arguments + "replaces the authority",
		arg("apiServer", "client-ca-file", "/etc/kubernetes/pki/ca.crt"):                                                                         "",
		arg("apiServer", "tls-cipher-suites", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"):                                                           "error " + arguments + "has neither of the cipher suites that HTTP/2 requires",
		arg("apiServer", "tls-cipher-suites", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"):                     "",
		initSpec + "apiServer: {args: [{name: tls-cipher-suites, value: TLS_AES_128_GCM_SHA256}, {name: tls-min-version, value: VersionTLS13}]}": "warning " + arguments + "has no effect",
		initSpec + "apiServer: {args: [{name: max-requests-inflight, value: '0'}, {name: max-mutating-requests-inflight, value: '0'}]}":          "error spec.apiServer.args[1]: is 0",
		initSpec + "apiServer: {env: [{name: https_proxy, value: 'http://p.example.com:3128'}]}":                                                 "warning spec.apiServer.env[0]: is the proxy for requests to kubelets",
		initSpec + "apiServer: {env: [{name: https_proxy, value: 'http://p.example.com:3128'}, {name: NO_PROXY, value: 10.0.0.0/8}]}":            "",
		initSpec + "apiServer: {volumes: [{name: ca-certs, hostPath: /srv/a}]}":                                                                  "error spec.apiServer.volumes[0].name: is the name of the volume",
		initSpec + "apiServer: {volumes: [{name: a, hostPath: /srv/bin, mountPath: /usr/local/bin}]}":                                            "warning spec.apiServer.volumes[0]: hides",
		initSpec + "apiServer: {image: 'registry.example.com/kube-scheduler:v1.37.1'}":                                                           "warning spec.apiServer.image: is the image of kube-scheduler",
		initSpec + "apiServer: {image: 'registry.example.com/kube-apiserver:v1.36.1'}":                                                           "warning spec.apiServer.image: is of another minor version",
		initSpec + "apiServer: {image: 'registry.example.com/kube-apiserver:v1.37.2'}":                                                           "",
		arg("controllerManager", "secure-port", "0"):                                                                                             "error spec.controllerManager.args[0].value: is not the port",
		arg("controllerManager", "secure-port", "10257"):                                                                                         "",
		arg("controllerManager", "unhealthy-zone-threshold", "55"):                                                                               "warning spec.controllerManager.args[0].value: is more than all nodes",
		arg("controllerManager", "unhealthy-zone-threshold", "0.55"):                                                                             "",
		arg("controllerManager", "cluster-signing-duration", "1m"):                                                                               "warning spec.controllerManager.args[0].value: lets certificates",
		arg("controllerManager", "cluster-signing-duration", "8760h"):                                                                            "",
		arg("controllerManager", "root-ca-file", "/etc/kubernetes/pki/front-proxy-ca.crt"):                                                       "warning spec.controllerManager.args[0].value: gives pods an authority",

		arg("etcd", "initial-cluster-state", "existing"):                                  "error " + etcd + "is for a member that joins",
		arg("etcd", "initial-cluster-state", "new"):                                       "warning " + etcd + "keeps further control planes",
		arg("etcd", "force-new-cluster", "true"):                                          "warning " + etcd + "removes every other member",
		arg("etcd", "wal-dir", "/var/lib/etcd-wal"):                                       "error " + etcd + "is a directory in the container",
		arg("etcd", "wal-dir", "/var/lib/etcd/wal"):                                       "",
		arg("etcd", "listen-metrics-urls", "http://127.0.0.1:2381,http://0.0.0.0:2381"):   "error " + etcd + "has one port twice",
		arg("etcd", "listen-metrics-urls", "http://127.0.0.1:2381,http://192.0.2.1:2381"): "",
		arg("etcd", "listen-metrics-urls", "https://0.0.0.0:2381"):                        "error " + etcd + "begins with an address for which clients need a certificate",
		arg("etcd", "listen-client-urls", "http://0.0.0.0:2379"):                          "error " + etcd + "has no address with TLS",
		arg("etcd", "advertise-client-urls", "https://0.0.0.0:2379"):                      "warning " + etcd + "is no address of this machine for others",
		arg("etcd", "advertise-client-urls", "https://192.0.2.1:2379"):                    "",
		arg("etcd", "max-txn-ops", "0"):                                                   "error " + etcd + "refuses every transaction",
		arg("etcd", "max-txn-ops", "128"):                                                 "",
		arg("etcd", "discovery-srv", "example.com"):                                       "error " + etcd + "excludes initial-cluster",
		arg("etcd", "config-file", "/etc/kubernetes/pki/etcd/e.yaml"):                     "error " + etcd + "makes etcd ignore",
		initSpec + "etcd: {local: {args: [{name: auto-compaction-mode, value: revision}, {name: auto-compaction-retention, value: 8h}]}}":     "error spec.etcd.local.args[1].value: is a time",
		initSpec + "etcd: {local: {args: [{name: auto-compaction-mode, value: revision}, {name: auto-compaction-retention, value: '1000'}]}}": "",
		initSpec + "etcd: {local: {args: [{name: tls-min-version, value: TLS1.3}, {name: tls-max-version, value: TLS1.2}]}}":                  "error spec.etcd.local.args[1].value: is less",
		initSpec + "etcd: {local: {dataDir: /var/lib}}":                              "error spec.etcd.local.dataDir: is a directory of others",
		initSpec + "etcd: {local: {dataDir: /etc/kubernetes/pki}}":                   "error spec.etcd.local.dataDir",
		initSpec + "etcd: {local: {dataDir: /run/etcd}}":                             "warning spec.etcd.local.dataDir: is emptied at a boot",
		initSpec + "etcd: {local: {dataDir: /srv/etcd}}":                             "",
		initSpec + "etcd: {local: {image: {repository: registry.example.com/etcd}}}": "warning spec.etcd.local.image.repository: ends with the name",

		kubelet("tlsCipherSuites: [TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384]"):                                              "error spec.kubelet.config.tlsCipherSuites: has neither",
		kubelet("tlsCipherSuites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]"):                                            "",
		kubelet("nodeLeaseDurationSeconds: 600"):                                                                         "warning spec.kubelet.config.nodeLeaseDurationSeconds: is renewed",
		kubelet("nodeLeaseDurationSeconds: 80"):                                                                          "",
		kubelet("enableServer: false"):                                                                                   "warning spec.kubelet.config.enableServer",
		kubelet("address: 127.0.0.1"):                                                                                    "warning spec.kubelet.config.address",
		kubelet("address: 192.0.2.1"):                                                                                    "",
		kubelet("resolvConf: /run/systemd/resolve/stub-resolv.conf"):                                                     "warning spec.kubelet.config.resolvConf",
		kubelet("authentication: {anonymous: {enabled: true}}, authorization: {mode: AlwaysAllow}"):                      "warning spec.kubelet.config.authorization",
		kubelet("containerLogMaxSize: 10m"):                                                                              "error spec.kubelet.config.containerLogMaxSize: is less than a byte",
		kubelet("containerLogMaxSize: 10M"):                                                                              "",
		kubelet("evictionSoft: {memory.available: 50Mi}, evictionSoftGracePeriod: {memory.available: 1m}"):               "warning spec.kubelet.config.evictionSoft",
		kubelet("evictionSoft: {memory.available: 1Gi}, evictionSoftGracePeriod: {memory.available: 1m}"):                "",
		kubelet("topologyManagerPolicy: best-effort, topologyManagerPolicyOptions: {prefer-closest-numa-nodes: 'yes'}"):  "error spec.kubelet.config.topologyManagerPolicyOptions",
		kubelet("topologyManagerPolicy: best-effort, topologyManagerPolicyOptions: {prefer-closest-numa-nodes: 'true'}"): "",
		workerSpec + "kubelet: {kubeReserved: {memory: '512'}}":                                                          "warning spec.kubelet.kubeReserved",
		workerSpec + "kubelet: {kubeReserved: {memory: 512Mi, cpu: 500m}}":                                               "",
		workerSpec + "kubelet: {kubeReserved: {cpu: '500'}}":                                                             "warning spec.kubelet.kubeReserved",

		initSpec + "cluster: {serviceSubnets: [127.0.0.0/16]}":                                                                                             "error spec.cluster.serviceSubnets[0]: is a range of loopback",
		initSpec + "cluster: {podSubnets: [224.0.0.0/16]}":                                                                                                 "error spec.cluster.podSubnets[0]: is a range of loopback",
		initSpec + "cluster: {podSubnets: [100.64.0.0/16]}":                                                                                                "",
		initSpec + "cluster: {endpoint: 'api.example.com:6443', dnsDomain: example.com}":                                                                   "warning spec.cluster.dnsDomain: has the name",
		initSpec + "cluster: {endpoint: 'api.example.com:6443', dnsDomain: k8s.example.com}":                                                               "",
		initSpec + "cluster: {endpoint: 'api.example.com:2379'}":                                                                                           "warning spec.cluster.endpoint: has the port of etcd",
		initSpec + "cluster: {endpoint: '192.0.2.1:6443'}\nnode: {advertiseAddress: 192.0.2.1, advertisePort: 8443}":                                       "warning spec.cluster.endpoint: is the address of this machine",
		initSpec + "cluster: {endpoint: '192.0.2.1:8443'}\nnode: {advertiseAddress: 192.0.2.1, advertisePort: 8443}":                                       "",
		initSpec + "cluster: {certificateValidity: 10m}":                                                                                                   "warning spec.cluster.certificateValidity: is less than a day",
		initSpec + "cluster: {podSubnets: [10.244.0.0/16]}\ncontrollerManager: {args: [{name: node-cidr-mask-size, value: '28'}]}":                         "warning spec.controllerManager.args: give each node 14",
		initSpec + "cluster: {podSubnets: [10.244.0.0/16]}\nkubelet: {maxPods: 10}\ncontrollerManager: {args: [{name: node-cidr-mask-size, value: '28'}]}": "",
		initSpec + "skipPhases: [upload-config]":                                                                                                           "warning spec.skipPhases[0]: leaves out the configuration",
		initSpec + "skipPhases: [addon/kube-proxy]\nkubeProxy: {mode: ipvs}":                                                                               "warning spec.skipPhases[0]: leaves out kube-proxy",
		initSpec + "skipPhases: [addon/kube-proxy]":                                                                                                        "",
		workerSpec + "skipPhases: [kubelet-start]":                                                                                                         "warning spec.skipPhases[0]: leaves out the phase that starts",
		"role: controlPlaneInit\nkubernetesVersion: v1.30.4\nkubeProxy: {mode: nftables}":                                                                  "error spec.kubeProxy.mode: needs the feature gate",
		initSpec + "kubeProxy: {mode: nftables}":                                                                                                           "",

		workerSpec + "node: {name: node-aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee.ffffffffffffff.example.com}": "error spec.node: the name has more than 63",
		workerSpec + "node: {labels: {kubernetes.io/arch: x86_64}}":                                                     "warning spec.node.labels",
		workerSpec + "node: {register: false, labels: {a: b}}":                                                          "warning spec.node.register: is false",

		file("/etc/sysctl.d/zz.conf", `vm.swappiness = 1\n`): "warning spec.files[0].path: is read at the start",
		file("/etc/passwd", `root:x:0:0::/root:/bin/sh\n`):   "warning spec.files[0].path: is replaced as a whole",
		file("/opt/a.sh", `#!/bin/sh echo a echo b\n`):       "warning spec.files[0]: is a script of one line",
		file("/opt/a.sh", `#!/bin/sh\necho a\n`):             "",
		file("/etc/cni/net.d/10-a.conflist", `{}`):           "error spec.files[0]: is no list of network plugins",
		file("/etc/systemd/system/kubelet.service.d/20-a.conf", `[Service]\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml\n`): "error spec.files[0]: adds a second ExecStart=",
		file("/etc/systemd/system/kubelet.service.d/20-a.conf", `[Service]\nExecStart=\nExecStart=/usr/bin/kubelet\n`):                           "warning spec.files[0]: starts the kubelet without",
		file("/etc/systemd/system/kubelet.service.d/20-a.conf", `[Service]\nExecStart=\nExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS\n`):      "",
		file("/etc/systemd/system/kubelet.service.d/20-a.conf", `[Service]\nNice=-5\n`):                                                          "",
		initSpec + "patches: [{target: etcd, patch: '{spec: {hostNetwork: false}}'}]":                                                            "warning spec.patches[0].patch: takes etcd from the network",
	} {
		said(t, text, want)
	}
}
