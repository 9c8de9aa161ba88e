package settings

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings/settingstest"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// refusals maps a spec to its violations.
func refusals() map[string]string {
	const (
		i, j, w = initSpec, joinSpec, workerSpec
		network = "must be a network"
		address = "must be HOST:PORT"
		special = "must not be a loopback, link-local or multicast address, and unspecified only alone"
		path    = "must be an absolute path in its shortest form"
		dns     = "must be a DNS name: at most 253 lower-case letters, digits, dots and -"
	)
	return map[string]string{
		"role: c4n4ry\nkubernetesVersion: c4n4ry": "spec.kubernetesVersion: is not a version of Kubernetes\nspec.role: is not a role",
		i + "providerConfig: {a: 1}":              "spec.providerConfig.a: unknown field",
		// roles
		"role: worker\nkubernetesVersion: v1.37.1": "spec.discovery: is required to join a cluster",
		w + "cluster: {dnsDomain: a, podSubnets: [10.0.0.0/16], serviceSubnets: [10.1.0.0/16], imageRepository: a, dnsImage: {tag: a}, certificateSANs: [a], keyAlgorithm: RSA-2048, certificateValidity: 1h, caCertificateValidity: 1h}": only(
			"controlPlaneInit", "cluster.dnsDomain", "cluster.podSubnets", "cluster.serviceSubnets", "cluster.imageRepository", "cluster.dnsImage", "cluster.certificateSANs") + "\n" +
			only("controlPlaneInit", "cluster.keyAlgorithm", "cluster.certificateValidity", "cluster.caCertificateValidity"),
		w + "node: {imagePullPolicy: Never}\nkubeProxy: {skip: true}\netcd: {local: {}}\nstaticPods: [{name: a, manifest: '{kind: Pod, apiVersion: v1, metadata: {name: a}, spec: {containers: [{name: a, image: b}]}}'}]\napiServer: {args: [{name: v, value: a}], env: [{name: A, value: b}], volumes: [{name: a, hostPath: /a}], image: 'a.example.com/b'}": only(
			"controlPlaneInit or controlPlaneJoin", "node.imagePullPolicy") + "\n" + only("controlPlaneInit", "kubeProxy", "etcd.local", "apiServer.args", "apiServer.env", "apiServer.volumes") + "\n" +
			only("controlPlaneInit or controlPlaneJoin", "apiServer.image", "staticPods"),
		i + "discovery: {caCertHashes: ['sha256:" + strings.Repeat("a", 64) + "'], endpoint: 'a:1'}": only("controlPlaneJoin or worker", "discovery.caCertHashes", "discovery.endpoint"),
		i + "discovery: {kubeconfig: {value: 'kind: Config'}}":                                       only("controlPlaneJoin or worker", "discovery.kubeconfig"),
		// cluster
		i + "cluster: {name: 'a b', endpoint: a, dnsDomain: A, podSubnets: [a, 10.0.0.1/8, 10.0.0.0/8, 10.0.0.0/9], serviceSubnets: [10.0.0.0/8], imageRepository: 'a b', certificateSANs: ['a b'], certificatesDir: a/, keyAlgorithm: DSA, certificateValidity: 1y, caCertificateValidity: '-1h'}": "spec.cluster.name: is not the name of a cluster\nspec.cluster.endpoint: must have a port\nspec.cluster.dnsDomain: is not a DNS domain\n" +
			"spec.cluster.podSubnets[0]: " + network + "\nspec.cluster.podSubnets[1]: " + network + "\nspec.cluster.podSubnets[3]: is the second network of its family\n" +
			"spec.cluster.serviceSubnets[0]: has more than 2^20 addresses\nspec.cluster.imageRepository: is not HOST/PATH\n" +
			"spec.cluster.certificateSANs[0]: is neither a DNS name nor an IP address\nspec.cluster.certificatesDir: " + path + "\n" +
			"spec.cluster.certificateValidity: must be a Go duration above zero\n" +
			"spec.cluster.caCertificateValidity: must be a Go duration above zero",
		i + "cluster: {dnsImage: {repository: 'a b', tag: '-'}}": "spec.cluster.dnsImage.repository: is not HOST/PATH\nspec.cluster.dnsImage.tag: is not a tag",
		i + "cluster: {endpoint: '2001:db8::1:6443'}":            "spec.cluster.endpoint: " + address,
		i + "cluster: {endpoint: '192.0.2.300:6443'}":            "spec.cluster.endpoint: " + address,
		i + "cluster: {endpoint: 'a:0'}":                         "spec.cluster.endpoint: " + address,
		i + "cluster: {endpoint: 'a:65536'}":                     "spec.cluster.endpoint: " + address,
		i + "cluster: {endpoint: 'https://a:1'}":                 "spec.cluster.endpoint: " + address,
		i + "cluster: {endpoint: '[2001:db8::1]:1'}":             "",
		// node
		i + "node: {name: A, ip: a, providerID: 'a b'}": "spec.node.name: " + dns + "\nspec.node.ip: must be an IP address, or two of different families separated by a comma\n" +
			"spec.node.providerID: must have from 1 to 512 printable characters without blanks",
		i + "node: {ip: '192.0.2.1,192.0.2.2'}":         "spec.node.ip: has two addresses of one family",
		i + "node: {ip: '0.0.0.0', advertisePort: 443}": "",
		i + "node: {ip: '0.0.0.0,::'}":                  "spec.node.ip: " + special,
		w + "node: {advertisePort: 8443}":               only("controlPlaneInit or controlPlaneJoin", "node.advertisePort"),
		i + "node: {ip: '192.0.2.1,fe80::1'}":           "spec.node.ip: " + special,
		w + "node: {ip: '127.0.0.1'}":                   "spec.node.ip: " + special,
		i + "node: {ip: '2001:db8::1'}":                 "spec.node.ip: is of another family than the first of the default of spec.cluster.serviceSubnets, 10.96.0.0/12, with which the API server does not start",
		i + "node: {ip: '2001:db8::1,192.0.2.1'}\ncluster: {serviceSubnets: [10.96.0.0/16, '2001:db8:1::/112']}":  "spec.node.ip: is of another family than the first of spec.cluster.serviceSubnets, with which the API server does not start",
		i + "node: {ip: '2001:db8::1', advertiseAddress: 192.0.2.1}":                                              "",
		i + "node: {ip: '192.0.2.1', advertiseAddress: '2001:db8::1'}":                                            "spec.node.advertiseAddress: is of another family than the first of the default of spec.cluster.serviceSubnets, 10.96.0.0/12, with which the API server does not start",
		i + "node: {advertiseAddress: '127.0.0.1'}":                                                               "",
		i + "node: {advertiseAddress: '192.0.2.1,2001:db8::1'}":                                                   "spec.node.advertiseAddress: must be one IP address",
		i + "node: {advertiseAddress: '169.254.1.1'}":                                                             "spec.node.advertiseAddress: must not be a link-local or multicast address",
		j + "node: {ip: '2001:db8::1', advertiseAddress: '2001:db8::2', advertiseAddressFrom: {interface: eth0}}": "spec.node.advertiseAddressFrom: is given as well as spec.node.advertiseAddress",
		j + "node: {advertiseAddressFrom: {interface: eth0, family: 'ipv4,ipv6'}}":                                "spec.node.advertiseAddressFrom.family: is two families, and the field is one address",
		w + "node: {advertiseAddress: 192.0.2.1, advertiseAddressFrom: {interface: eth0}}":                        only("controlPlaneInit or controlPlaneJoin", "node.advertiseAddress", "node.advertiseAddressFrom") + "\nspec.node.advertiseAddressFrom: is given as well as spec.node.advertiseAddress",
		i + "node: {name: a, nameFrom: {hostname: short}}":                                                        "spec.node.nameFrom: is given as well as spec.node.name",
		i + "node: {nameFrom: {}}":                                                                                "spec.node.nameFrom: must have exactly one of hostname and file",
		i + "node: {nameFrom: {hostname: short, file: /a}}":                                                       "spec.node.nameFrom: must have exactly one of hostname and file",
		i + "node: {nameFrom: {interface: eth0}}":                                                                 "spec.node.nameFrom: must have exactly one of hostname and file",
		i + "node: {ipFrom: {hostname: short}}":                                                                   "spec.node.ipFrom: must have exactly one of interface and file",
		i + "node: {nameFrom: {hostname: short, jsonKeys: [a]}}":                                                  "spec.node.nameFrom.jsonKeys: is for file only",
		i + "node: {nameFrom: {file: /a, key: a, jsonKeys: [a..b, '', a.b]}}":                                     "spec.node.nameFrom.jsonKeys: is given as well as spec.node.nameFrom.key\nspec.node.nameFrom.jsonKeys[0]: must be names of keys, joined with dots\nspec.node.nameFrom.jsonKeys[1]: must be names of keys, joined with dots",
		i + "node: {nameFrom: {hostname: long, family: ipv5, key: a}}":                                            "spec.node.nameFrom.family: is for interface only\nspec.node.nameFrom.key: is for file only",
		i + "node: {ipFrom: {interface: eth0, prefix: a}}":                                                        "spec.node.ipFrom.prefix: an address has no prefix",
		i + "node: {ipFrom: {file: a/../b}}":                                                                      "spec.node.ipFrom.file: " + path,
		i + "node: {labels: {'a b': c, d: 'e f', kubernetes.io/x: y, x.k8s.io/y: z, node.kubernetes.io/a: b, kubernetes.io/os: linux}}": "spec.node.labels[\"a b\"]: is not the key of a label\n" +
			"spec.node.labels.d: is not the value of a label\nspec.node.labels[\"kubernetes.io/x\"]: is a label that a kubelet must not set on its node\n" +
			"spec.node.labels[\"x.k8s.io/y\"]: is a label that a kubelet must not set on its node",
		i + "node: {taints: [{key: a/b/c, value: 'd e', effect: Never}, {key: a, effect: NoExecute}, {key: a, effect: NoExecute}]}": "spec.node.taints[0].key: is not the key of a label\nspec.node.taints[0].value: is not the value of a label\n" +
			"spec.node.taints[2]: is the same as spec.node.taints[1]",
		i + "node: {kubeletArgs: [{name: --v, value: a}, {name: '', value: a}, {name: node-ip, value: a}, {name: config, value: a}, {name: v, value: 'a b'}, {name: v, value: 'a$b'}]}": "spec.node.kubeletArgs[2].name: is set by spec.node.ip\nspec.node.kubeletArgs[3].name: is set by the provider\n" +
			"spec.node.kubeletArgs[0].name: is not the name of an argument\nspec.node.kubeletArgs[1].name: is empty\n" +
			"spec.node.kubeletArgs[4].value: has blanks, quotes, $ or \\, which kubeadm's file of arguments cannot express\n" +
			"spec.node.kubeletArgs[5].value: has blanks, quotes, $ or \\, which kubeadm's file of arguments cannot express",
		i + "node: {swap: off}\nfiles: [{path: /etc/fstab, content: a}]":                     "spec.files[0].path: is a file that spec.node.swap: off edits",
		i + "node: {swap: keep}\nfiles: [{path: /etc/fstab, content: a}]":                    "",
		i + "node: {criSocket: /run/a.sock, imagePullPolicy: Sometimes, cloudProvider: aws}": "spec.node.criSocket: is not the address of a container runtime",
		// kubelet and kube-proxy
		i + "kubelet: {cgroupDriver: a, maxPods: 0, systemReserved: {gpu: '1', cpu: a}, evictionHard: {memory: '5', pid.available: a}, config: {maxPods: 1, providerID: a, kind: b, cgroupDriver: c}}": "spec.kubelet.config.cgroupDriver: is set by spec.kubelet.cgroupDriver\nspec.kubelet.config.kind: is set by the provider\n" +
			"spec.kubelet.config.maxPods: is set by spec.kubelet.maxPods\nspec.kubelet.config.providerID: is set by spec.node.providerID\n" +
			"spec.kubelet.systemReserved.cpu: is not a quantity of this field\nspec.kubelet.systemReserved.gpu: is not a value of this field\n" +
			"spec.kubelet.evictionHard.memory: is not a value of this field\nspec.kubelet.evictionHard[\"pid.available\"]: is not a quantity of this field",
		i + "kubelet: {config: [a]}":                                      "spec.kubelet.config: must be a mapping",
		i + "kubeProxy: {skip: true, mode: userspace, config: {mode: a}}": "spec.kubeProxy.config.mode: is set by spec.kubeProxy.mode\nspec.kubeProxy.skip: excludes the other fields of spec.kubeProxy",
		// discovery, certificates, etcd
		i + "certificateKey: {value: c4n4ry}\ndiscovery: {token: {value: c4n4ry}}":                                                       "spec.certificateKey: must have 64 hexadecimal digits\nspec.discovery.token: is not a bootstrap token",
		"role: worker\nkubernetesVersion: v1.37.1\ndiscovery: {token: {value: abcdef.0123456789abcdef}, caCertHashes: [a], endpoint: a}": "spec.discovery.caCertHashes[0]: is not the hash of a public key\nspec.discovery.endpoint: must have a port",
		"role: worker\nkubernetesVersion: v1.37.1\ndiscovery: {token: {value: abcdef.0123456789abcdef}}":                                 "spec.discovery.caCertHashes: is required with a token: without it any server could claim to be the cluster\nspec.discovery.endpoint: is required without spec.cluster.endpoint",
		"role: worker\nkubernetesVersion: v1.37.1\ndiscovery: {}":                                                                        "spec.discovery: has neither a token nor a kubeconfig",
		joining("kind: Config"): "spec.discovery.kubeconfig: has no cluster in its current-context, which kubeadm would join",
		joining(strings.Replace(kubeconfig, "current-context: a", "current-context: b", 1)):                "spec.discovery.kubeconfig: has no cluster in its current-context, which kubeadm would join",
		joining(strings.Replace(kubeconfig, `server: "https://a:1"`, "insecure-skip-tls-verify: true", 1)): "spec.discovery.kubeconfig: has no server for the cluster of its current-context",
		joining(strings.Replace(kubeconfig, "token: t", `client-key: /a`, 1)):                              "spec.discovery.kubeconfig: has no credentials for the user of its current-context, with which the kubelet would ask for its certificate",
		joining(strings.Replace(kubeconfig, "user: c}", "user: d}", 1)):                                    "spec.discovery.kubeconfig: has no credentials for the user of its current-context, with which the kubelet would ask for its certificate",
		joining(strings.Replace(kubeconfig, "token: t", `client-key: /a, client-certificate-data: b`, 1)):  "",
		joining(strings.Replace(kubeconfig, "name: b, cluster", `name: "", cluster`, 1)):                   "",
		// versions
		"role: controlPlaneInit\nkubernetesVersion: v1.28.0":                                                                                "spec.kubernetesVersion: is not served by kubeadm 1.30 to 1.37, which this plugin supports",
		"role: controlPlaneInit\nkubernetesVersion: v1.38.0":                                                                                "spec.kubernetesVersion: is not served by kubeadm 1.30 to 1.37, which this plugin supports",
		"role: controlPlaneInit\nkubernetesVersion: v1.29.0":                                                                                "",
		"role: worker\nkubernetesVersion: v1.37.1\ndiscovery: {kubeconfig: {value: c4n4ry}, endpoint: 'a:1'}":                               "spec.discovery.kubeconfig: excludes the other fields of spec.discovery\nspec.discovery.kubeconfig: is not a kubeconfig",
		j + "certificateKey: {value: " + strings.Repeat("a", 64) + "}\ncertificates: {ca: {certificate: '@CA@', key: {value: '@CA-KEY@'}}}": "spec.certificates: is given as well as spec.certificateKey, which downloads them",
		i + "certificates: {}": "spec.certificates: has no certificate",
		i + "certificates: {ca: {certificate: a, key: {value: c4n4ry}}, frontProxyCA: {certificate: '@CA@', key: {value: c4n4ry}}, etcdCA: {certificate: '@PUBLIC@', key: {value: a}}, serviceAccount: {certificate: '@CA@', key: {value: c4n4ry}}}": "spec.certificates.ca.certificate: has something else than certificates in PEM format\nspec.certificates.frontProxyCA.key: is not a key in PEM format\n" +
			"spec.certificates.etcdCA.certificate: has something else than certificates in PEM format\nspec.certificates.serviceAccount.certificate: is not one PUBLIC KEY in PEM format",
		i + "certificates: {serviceAccount: {certificate: '@PUBLIC@', key: {value: c4n4ry}}}": "spec.certificates.serviceAccount.key: is not a key in PEM format",
		i + "etcd: {}": "spec.etcd: must have exactly one of local and external",
		i + "etcd: {local: {dataDir: a, args: [{name: -a, value: b}], env: [{name: '1', value: b}, {name: A, value: b}, {name: A, value: b}], image: {repository: 'a b', tag: 'a b'}}}": "spec.etcd.local.dataDir: " + path + "\nspec.etcd.local.args[0].name: is not the name of an argument\nspec.etcd.local.env[0].name: is not the name of a variable\n" +
			"spec.etcd.local.env[2].name: is the same as spec.etcd.local.env[1].name\nspec.etcd.local.image.repository: is not HOST/PATH\nspec.etcd.local.image.tag: is not a tag",
		i + "etcd: {external: {endpoints: []}}":                                                              "spec.etcd.external.endpoints: is empty",
		i + "etcd: {external: {endpoints: ['http://a:1', 'https://b:1/c', 'https://u:c4n4ry@d']}}":           "spec.etcd.external.endpoints[1]: must be a URL of scheme, host and port\nspec.etcd.external.endpoints[2]: must be a URL of scheme, host and port",
		i + "etcd: {external: {endpoints: ['http://a:1'], ca: a, cert: b}}":                                  "spec.etcd.external.endpoints[0]: must begin with https://\nspec.etcd.external.ca: has something else than certificates in PEM format\nspec.etcd.external.key: belongs to cert, and one of the two is absent",
		i + "etcd: {external: {endpoints: ['https://a:1'], ca: '@CA@', cert: '@CA@', key: {value: c4n4ry}}}": "spec.etcd.external.key: is not the key of cert",
		// components
		i + "scheduler: {args: [{name: v, value: \"a\\nb\"}], volumes: [{name: A, hostPath: a, mountPath: b, pathType: c}, {name: b, hostPath: /b}, {name: b, hostPath: /b}], image: a}": "spec.scheduler.args[0].value: has control characters\nspec.scheduler.image: is not the reference of an image\nspec.scheduler.volumes[0].name: is not a DNS label\n" +
			"spec.scheduler.volumes[0].hostPath: " + path + "\nspec.scheduler.volumes[0].mountPath: " + path + "\nspec.scheduler.volumes[2].name: is the same as spec.scheduler.volumes[1].name",
		// files, static pods, patches
		i + "files: [{path: /a, content: a, secretContent: {value: b}}, {path: /b}, {path: c, content: a}, {path: /a, content: a}, {path: /d, secretContent: {value: c4n4ry!}, encoding: base64, mode: '0646'}]": "spec.files[0]: must have exactly one of content and secretContent\nspec.files[1]: must have exactly one of content and secretContent\nspec.files[2].path: " + path + "\n" +
			"spec.files[3].path: is the same as spec.files[0].path\nspec.files[4].secretContent: is not valid base64\nspec.files[4].mode: lets every user of the machine change or run a secret",
		i + "files: [{path: /a/b, content: a}, {path: /a, content: a}, {path: /a/b/c, content: a}, {path: /a/bc, content: a}]": "spec.files[1].path: excludes spec.files[0].path: one of the two is below the other\n" +
			"spec.files[2].path: excludes spec.files[1].path: one of the two is below the other\nspec.files[3].path: excludes spec.files[1].path: one of the two is below the other",
		i + "files: [{path: /a/" + strings.Repeat("x", 256) + "/b, content: a}]": "spec.files[0].path: has a name of more than 255 bytes",
		i + "files: [{path: /a, content: a, mode: '0000'}, {path: /b, content: a, mode: '01777'}, {path: /c, content: a, mode: rw, owner: root, when: never, encoding: gzip}]": "spec.files[0].mode: is not a mode\nspec.files[1].mode: is not a mode\n" +
			"spec.files[2].mode: is not a mode\nspec.files[2].owner: is not USER:GROUP",
		i + "files: [{path: /etc/kubernetes/admin.conf, content: a}, {path: /etc/kubernetes/pki/etcd/ca.key, content: a}, {path: /var/lib/kubelet/config.yaml, content: a}, {path: /etc/kubernetes/audit/a.conf, content: a}, {path: /var/lib/etcd2, content: a}]": "spec.files[0].path: is a path of the provider, of the host or of the kernel\n" +
			"spec.files[1].path: is a path of the provider, of the host or of the kernel\nspec.files[2].path: is a path of the provider, of the host or of the kernel",
		i + "staticPods: [{name: etcd, manifest: a}, {name: a, manifest: '{kind: Pod}'}, {name: a, manifest: \"a: *c4n4ry\"}]": "spec.staticPods[0].name: is not a DNS label, or the name of a component\nspec.staticPods[0].manifest: is not a Pod with a name\n" +
			"spec.staticPods[1].manifest: is not a Pod with a name\nspec.staticPods[2].name: is the same as spec.staticPods[1].name\nspec.staticPods[2].manifest: is not one value in YAML or JSON",
		i + "patches: [{target: kubelet, patch: '{}'}, {target: etcd, type: a, patch: '[]'}, {target: etcd, type: json, patch: '{}'}, {target: etcd, patch: ''}]": "spec.patches[1].patch: must be a mapping\nspec.patches[2].patch: must be a list of operations\nspec.patches[3].patch: is not one value in YAML or JSON",
		w + "patches: [{target: kubeletconfiguration, patch: '{}'}, {target: etcd, patch: '{}'}]":                                                                 "spec.patches[1].target: is for the role controlPlaneInit or controlPlaneJoin only",
		j + "patches: [{target: etcd, patch: '{}'}, {target: corednsdeployment, patch: '{}'}]":                                                                    "spec.patches[1].target: is for the role controlPlaneInit only",
		// kubeadm
		i + "skipPhases: [A, addon/coredns, addon/coredns]\nignorePreflightErrors: ['a b', All, NumCPU, numcpu]\nignoreAllPreflightErrors: true\ntimeouts: {controlPlane: 0s, kubelet: a, kubernetesAPI: a, etcdAPI: a, tlsBootstrap: a, discovery: a}": "spec.skipPhases[0]: is not the name of a phase\nspec.skipPhases[2]: is the same as spec.skipPhases[1]\nspec.ignorePreflightErrors[0]: is not the name of a check\n" +
			"spec.ignorePreflightErrors[1]: means every check\nspec.ignorePreflightErrors[3]: is the same as spec.ignorePreflightErrors[2]\n" +
			"spec.ignorePreflightErrors: means nothing while spec.ignoreAllPreflightErrors is true\n" + every("must be a Go duration above zero",
			"timeouts.controlPlane", "timeouts.kubelet", "timeouts.kubernetesAPI", "timeouts.etcdAPI", "timeouts.tlsBootstrap", "timeouts.discovery"),
	}
}

func every(message string, fields ...string) string {
	var lines []string
	for _, f := range fields {
		lines = append(lines, "spec."+f+": "+message)
	}
	return strings.Join(lines, "\n")
}

func only(roles string, fields ...string) string {
	return every("is for the role "+roles+" only", fields...)
}

// joining is a worker with a kubeconfig.
func joining(kubeconfig string) string {
	return "role: worker\nkubernetesVersion: v1.37.1\ndiscovery: {kubeconfig: {value: '" + kubeconfig + "'}}"
}

// TestRefused: every fault of a document is reported at once, at its field, and no value is quoted.
func TestRefused(t *testing.T) {
	t.Parallel()
	for text, want := range refusals() {
		_, violations, err := spec(t, text)
		require.NoError(t, err, text)
		assert.ElementsMatch(t, strings.Split(want, "\n"), strings.Split(shown(violations), "\n"), text)
		assert.NotContains(t, strings.ToLower(fmt.Sprint(violations)), settingstest.Canary, text)
	}
}

func TestRefusedOnWindows(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		initSpec: "spec.role: Windows has no control plane",
		joinSpec: "spec.role: Windows has no control plane",
		workerSpec + `files: [{path: 'C:\a', content: b}, {path: /a, content: b}, {path: 'C:\b\..\c', content: b}, {path: 'C:\d', content: b, mode: "0600", owner: "a:b"}]`: "spec.files[1].path: must be an absolute path in its shortest form\nspec.files[2].path: must be an absolute path in its shortest form\nspec.files[3].mode: Windows has no such mode\nspec.files[3].owner: Windows has no such owner",
		workerSpec + "node: {swap: off}":                               "spec.node.swap: Windows has no such setting",
		workerSpec + "cluster: {certificatesDir: /etc/kubernetes/ssl}": "",
		workerSpec + `cluster: {certificatesDir: 'C:\etc\ssl'}`:        "spec.cluster.certificatesDir: must be an absolute path in its shortest form",
		workerSpec + "cluster: {certificatesDir: /Windows/ssl}":        "spec.cluster.certificatesDir: is a path of the operating system",
		workerSpec + "node: {criSocket: 'unix:///run/a.sock'}":         "spec.node.criSocket: is not the address of a container runtime",
	} {
		_, violations, err := spec(t, text, windows)
		require.NoError(t, err)
		assert.Equal(t, want, shown(violations), text)
	}
}

// FuzzValueOf: a value is part of its file, one line, and no error quotes the file.
func FuzzValueOf(f *testing.F) {
	for _, seed := range []string{"A=1\n", "A = \"x\"\nB='y'\n", "=\n", "A=\"\n", "A=1\nA=2", " value \n", "A=\x00", "A=''"} {
		f.Add(seed, "A")
		f.Add(seed, "")
	}
	f.Fuzz(func(t *testing.T, text, key string) {
		value, err := valueOf(text, key)
		if err != nil {
			if value != "" || len(err.Error()) > 60 {
				t.Fatal("a value, or an error that quotes")
			}
			return
		}
		if value == "" || strings.ContainsAny(value, "\n\r\x00") || !strings.Contains(text, value) {
			t.Fatalf("%q", value)
		}
	})
}

// FuzzAddress: what is accepted is HOST:PORT without a scheme or blanks.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"a:1", "[::1]:2", "192.0.2.1:6443", "a:b:1", ":1", "[::1%eth0]:1", "1:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := resolver{m: machinetest.New(t).Machine}
		if r.address("spec.x", text); len(r.violations) == 0 && strings.ContainsAny(text, " /%@\n\t") {
			t.Fatalf("%q", text)
		}
	})
}

// TestCapitals: the hint for a value that is only wrong in its case names the case.
func TestCapitals(t *testing.T) {
	t.Parallel()
	for text, hint := range map[string]string{
		"cluster: {imageRepository: Registry.example.com/k8s}": "write it in lower case",
		"cluster: {imageRepository: 'a b'}":                    "write it like registry.example.com/kubernetes",
		"cluster: {dnsDomain: Cluster.local}":                  "write it in lower case, like cluster.local",
		"cluster: {certificateSANs: [API.example.com]}":        "write a name in lower case, such as api.example.com",
	} {
		_, violations, err := spec(t, initSpec+text)
		require.NoError(t, err)
		require.Len(t, violations, 1, text)
		assert.Equal(t, hint, violations[0].Hint, text)
	}
}
