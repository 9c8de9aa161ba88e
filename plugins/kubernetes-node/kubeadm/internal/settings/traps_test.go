package settings

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTraps: what is valid and not meant has a warning, or an error where a component does not start for certain; the way out that its text
// names ends it.
func TestTraps(t *testing.T) {
	t.Parallel()
	const kubelet, server = initSpec + "kubelet: {", initSpec + "apiServer: {"
	const manager = initSpec + "controllerManager: {args: [{name: "
	const pod = initSpec + "staticPods: [{name: p, manifest: '{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {"
	const operations = initSpec + "patches: [{target: kube-apiserver, type: json, patch: '["
	const patch = initSpec + "patches: [{target: kube-apiserver, patch: '{spec: {"
	audit := func(volume string) string {
		return server + "args: [{name: audit-log-path, value: /var/log/audit/a.log}, {name: audit-policy-file, value: /etc/kubernetes/pki/policy.yaml}], volumes: [" + volume + "]}"
	}
	const policy = "args: [{name: audit-policy-file, value: /etc/kubernetes/audit/policy.yaml}, {name: audit-log-path, value: '-'}]"
	for text, want := range map[string]string{
		kubelet + "evictionHard: {memory.available: 5%}}":                                                                                                 "warning spec.kubelet.evictionHard: replaces all defaults of the kubelet, so that no pod is evicted for nodefs.available, nodefs.inodesFree, imagefs.available",
		kubelet + "evictionHard: {memory.available: 5%}, config: {mergeDefaultEvictionSettings: true}}":                                                   "",
		kubelet + "evictionHard: {memory.available: 5%, nodefs.available: 10%, nodefs.inodesFree: 0%, imagefs.available: 15%}}":                           "",
		kubelet + "kubeReserved: {cpu: '1'}, config: {enforceNodeAllocatable: [pods, kube-reserved], kubeReservedCgroup: /system.slice/kubelet.service}}": "warning spec.kubelet.config.kubeReservedCgroup: is a service",
		kubelet + "kubeReserved: {cpu: '1'}, config: {enforceNodeAllocatable: [pods, kube-reserved], kubeReservedCgroup: /kube.slice}}":                   "",
		kubelet + "cgroupDriver: cgroupfs, config: {enforceNodeAllocatable: [pods, kube-reserved], kubeReservedCgroup: /kubelet.service}}":                "",
		kubelet + "config: {memorySwap: {swapBehavior: LimitedSwap}}}":                                                                                    "warning spec.kubelet.config.memorySwap: has no effect with failSwapOn: true",
		kubelet + "config: {memorySwap: {swapBehavior: LimitedSwap}, failSwapOn: false}}":                                                                 "",
		workerSpec + "kubelet: {config: {memorySwap: {swapBehavior: LimitedSwap}}}":                                                                       "warning spec.kubelet.config.memorySwap",
		kubelet + "config: {clusterDNS: [10.96.0.10, 169.254.20.10]}}":                                                                                    "",
		kubelet + "config: {clusterDNS: [10.43.0.10]}}":                                                                                                   "warning spec.kubelet.config.clusterDNS[0]: is in none of the ranges of services",
		workerSpec + "kubelet: {config: {clusterDNS: [10.43.0.10]}}":                                                                                      "",
		kubelet + "maxPods: 500}\ncluster: {podSubnets: [10.244.0.0/16]}":                                                                                 "warning spec.kubelet.maxPods: is more than the 254 addresses",
		kubelet + "maxPods: 500}\ncluster: {podSubnets: [10.244.0.0/16]}\ncontrollerManager: {args: [{name: node-cidr-mask-size, value: '22'}]}":          "",
		kubelet + "maxPods: 500}\ncluster: {podSubnets: [10.244.0.0/16]}\ncontrollerManager: {args: [{name: allocate-node-cidrs, value: 'false'}]}":       "",
		kubelet + "maxPods: 500}": "",

		workerSpec + "node: {kubeletArgs: [{name: image-gc-high-threshold, value: '75'}]}":                                                                              "warning spec.node.kubeletArgs[0].value: with this value imageGCLowThresholdPercent, by default 80, is not less",
		initSpec + "node: {kubeletArgs: [{name: reserved-memory, value: '0:memory=1Gi;1:memory=2Gi,hugepages-1Gi=1Gi'}, {name: memory-manager-policy, value: Static}]}": "",
		initSpec + "node: {kubeletArgs: [{name: reserved-memory, value: '0:memory=3Gi,1:memory=2148Mi'}]}":                                                              "error spec.node.kubeletArgs[0].value: ",
		workerSpec + "node: {kubeletArgs: [{name: kube-api-qps, value: '-1'}]}":                                                                                         "error spec.node.kubeletArgs[0].value: must be at least 0",
		workerSpec + "kubelet: {config: {runtimeRequestTimeout: -1m}}":                                                                                                  "error spec.kubelet.config.runtimeRequestTimeout: must not be below 0s",
		workerSpec + "kubelet: {config: {qosReserved: {memory: '50'}}}":                                                                                                 "error spec.kubelet.config.qosReserved.memory: is not a value of this field",
		workerSpec + "kubelet: {config: {qosReserved: {memory: 50%}}}":                                                                                                  "",
		workerSpec + "kubelet: {config: {staticPodURL: example.com/a.yaml}}":                                                                                            "error spec.kubelet.config.staticPodURL: is not a value of this field",
		initSpec + "kubeProxy: {config: {iptables: {minSyncPeriod: 1m}}}":                                                                                               "error spec.kubeProxy.config.iptables.minSyncPeriod: is longer than syncPeriod",
		initSpec + "kubeProxy: {config: {iptables: {minSyncPeriod: 1m, syncPeriod: 2m}}}":                                                                               "",
		initSpec + "kubeProxy: {config: {portRange: 30000-32767}}":                                                                                                      "warning spec.kubeProxy.config.portRange: has no effect",
		initSpec + "kubeProxy: {config: {clientConnection: {kubeconfig: kubeconfig.conf}}}":                                                                             "warning spec.kubeProxy.config.clientConnection.kubeconfig: is not the file",
		initSpec + "ignorePreflightErrors: [NumCPUs]":                                                                                                                   "warning spec.ignorePreflightErrors[0]: is the name of no check that kubeadm is known to have, which ignores it: did you mean numcpu?",
		initSpec + "ignorePreflightErrors: [numcpu, Port-6443, FileAvailable--etc-kubernetes-manifests-etcd.yaml, Service-Kubelet]":                                     "",
		server + "env: [{name: HTTP_PROXY, value: 'http://p.example.com:3128 '}, {name: NO_PROXY, value: 10.0.0.0/8}]}":                                                 "warning spec.apiServer.env[0].value: begins or ends with a blank",

		workerSpec + "node: {kubeletArgs: [{name: cpu-manager-policy, value: static}]}":                                                                           "warning spec.node.kubeletArgs[0].value: static needs a reserved CPU",
		initSpec + "node: {kubeletArgs: [{name: cpu-manager-policy, value: static}]}":                                                                             "error spec.node.kubeletArgs[0].value: static needs a reserved CPU",
		initSpec + "node: {kubeletArgs: [{name: cpu-manager-policy, value: static}, {name: kube-reserved, value: 'cpu=500m,memory=1Gi'}]}":                        "",
		workerSpec + "node: {kubeletArgs: [{name: eviction-hard, value: 'memory.available<500Mi'}]}":                                                              "warning spec.node.kubeletArgs[0].value: replaces all defaults of the kubelet",
		initSpec + "node: {kubeletArgs: [{name: eviction-soft, value: 'memory.available<1Gi'}]}":                                                                  "error spec.node.kubeletArgs[0].value: memory.available has no grace period",
		initSpec + "node: {kubeletArgs: [{name: eviction-soft, value: 'memory.available<1Gi'}, {name: eviction-soft-grace-period, value: memory.available=90s}]}": "",

		audit(""): "warning spec.apiServer.args[0].value: is a file in the container, lost with it",
		audit("{name: log, hostPath: /var/log/audit}"):                                                   "error spec.apiServer.args[0].value: is on the volume log, which is read-only",
		audit("{name: log, hostPath: /var/log/audit, readOnly: false}"):                                  "",
		audit("{name: var, hostPath: /var/log}, {name: log, hostPath: /var/log/audit, readOnly: false}"): "",
		server + "args: [{name: audit-log-path, value: '-'}]}":                                           "warning spec.apiServer.args[0].name: has no effect without audit-policy-file",
		server + policy + "}": "error spec.apiServer.args[0].value: is a file that the container does not have",
		server + policy + ", volumes: [{name: audit, hostPath: /srv/audit, mountPath: /etc/kubernetes/audit}]}":                                                                            "",
		server + policy + ", image: 'registry.example.com/kube-apiserver:v1.37.1'}":                                                                                                        "",
		server + policy + "}\npatches: [{target: kube-apiserver, patch: '{}'}]":                                                                                                            "",
		server + "args: [{name: oidc-ca-file, value: /etc/kubernetes/pki/oidc-ca.crt}]}":                                                                                                   "error spec.apiServer.args[0].name: needs oidc-issuer-url",
		initSpec + "scheduler: {args: [{name: config, value: /etc/kubernetes/scheduler.yaml}]}":                                                                                            "error spec.scheduler.args[0].value: is a file that the container does not have",
		server + "args: [{name: oidc-issuer-url, value: 'http://idp.example.com'}, {name: oidc-client-id, value: kubernetes}]}":                                                            "error spec.apiServer.args[0].value: must begin with https://",
		workerSpec + "node: {kubeletArgs: [{name: network-plugin, value: cni}]}":                                                                                                           "error spec.node.kubeletArgs[0].name: is an argument that kubelet does not have since 1.29",
		initSpec + "controllerManager: {args: [{name: pod-eviction-timeout, value: 30s}]}":                                                                                                 "error spec.controllerManager.args[0].name: is an argument that kube-controller-manager does not have",
		server + "args: [{name: enable-admission-plugins, value: 'NodeRestriction,PodSecurityPolicy'}]}":                                                                                   "error spec.apiServer.args[0].value: PodSecurityPolicy is an admission plugin",
		server + "args: [{name: enable-admission-plugins, value: 'NodeRestriction,AlwaysPullImages'}]}":                                                                                    "",
		initSpec + "controllerManager: {args: [{name: cloud-provider, value: azure}]}":                                                                                                     "error spec.controllerManager.args[0].value: is no cloud provider of this version",
		"role: controlPlaneInit\nkubernetesVersion: v1.30.4\ncontrollerManager: {args: [{name: cloud-provider, value: azure}, {name: feature-gates, value: DisableCloudProviders=false}]}": "",
		initSpec + "controllerManager: {args: [{name: cloud-provider, value: external}]}":                                                                                                  "",
		initSpec + "kubelet: {config: {staticPodPath: /etc/pods}}":                                                                                                                         "error spec.kubelet.config.staticPodPath: is not the directory in which kubeadm puts the control plane",
		workerSpec + "kubelet: {config: {staticPodPath: /etc/pods}}":                                                                                                                       "",
		initSpec + "kubeProxy: {config: {nodePortAddresses: [10.0.0.1]}}":                                                                                                                  "error spec.kubeProxy.config.nodePortAddresses[0]: is not a range of addresses",
		initSpec + "kubeProxy: {config: {nodePortAddresses: [primary]}}":                                                                                                                   "",
		initSpec + "kubeProxy: {config: {nodePortAddresses: [primary, 10.0.0.0/8]}}":                                                                                                       "error spec.kubeProxy.config.nodePortAddresses: has primary beside ranges",
		initSpec + "kubeProxy: {config: {metricsBindAddress: '10249'}}":                                                                                                                    "error spec.kubeProxy.config.metricsBindAddress: is not an IP address with a port",
		initSpec + "kubeProxy: {config: {metricsBindAddress: '0.0.0.0:10249', healthzBindAddress: '[::]:1'}}":                                                                              "",
		initSpec + "kubeProxy: {config: {bindAddress: '10.0.0.1:80'}}":                                                                                                                     "error spec.kubeProxy.config.bindAddress: is not an IP address",
		initSpec + "kubeProxy: {config: {conntrack: {min: -1}}}":                                                                                                                           "error spec.kubeProxy.config.conntrack.min: must be at least 0",
		initSpec + "kubeProxy: {config: {oomScoreAdj: -9999}}":                                                                                                                             "error spec.kubeProxy.config.oomScoreAdj: must be from -1000 to 1000",
		initSpec + "kubeProxy: {config: {detectLocalMode: Bridge}}":                                                                                                                        "error spec.kubeProxy.config.detectLocalMode: is not a value of this field",
		initSpec + "kubeProxy: {config: {detectLocalMode: BridgeInterface}}":                                                                                                               "error spec.kubeProxy.config.detectLocalMode: needs detectLocal.bridgeInterface",
		initSpec + "kubeProxy: {config: {detectLocalMode: BridgeInterface, detectLocal: {bridgeInterface: a}}}":                                                                            "",
		initSpec + "kubeProxy: {config: {clusterCIDR: 10.244.0.0}}":                                                                                                                        "error spec.kubeProxy.config.clusterCIDR: is not a range of addresses",
		initSpec + "kubelet: {config: {clusterDomain: other.local}}":                                                                                                                       "error spec.kubelet.config.clusterDomain: contradicts spec.cluster.dnsDomain",
		initSpec + "cluster: {dnsDomain: other.local}\nkubelet: {config: {clusterDomain: other.local}}":                                                                                    "",
		workerSpec + "kubelet: {config: {clusterDomain: other.local}}":                                                                                                                     "",
		server + "volumes: [{name: pki, hostPath: /a, mountPath: /etc/kubernetes/pki}]}":                                                                                                   "error spec.apiServer.volumes[0].mountPath: is where the volume k8s-certs is mounted",
		server + "args: [{name: authorization-mode, value: Node}]}":                                                                                                                        "error spec.apiServer.args[0].value: gives kubeadm no rights",
		server + "args: [{name: authorization-mode, value: 'Node,AlwaysAllow'}]}":                                                                                                          "",
		server + "args: [{name: etcd-servers, value: 'http://127.0.0.1:2379'}]}":                                                                                                           "error spec.apiServer.args[0].value: has an address without TLS",
		server + "args: [{name: etcd-servers, value: 'https://127.0.0.1:2379'}]}":                                                                                                          "",
		server + "args: [{name: service-node-port-range, value: '30000 - 32767'}]}":                                                                                                        "error spec.apiServer.args[0].value: is not a range of ports",
		server + "args: [{name: service-node-port-range, value: ' 30000-32767'}]}":                                                                                                         "",
		initSpec + "kubelet: {config: {cpuManagerPolicyOptions: {full-pcpus-only: 'true'}, cpuManagerPolicy: none}}":                                                                       "error spec.kubelet.config.cpuManagerPolicyOptions: needs cpuManagerPolicy",
		workerSpec + "kubelet: {config: {cpuManagerPolicyOptions: {full-pcpus-only: 'true'}}}":                                                                                             "warning spec.kubelet.config.cpuManagerPolicyOptions: needs cpuManagerPolicy",
		workerSpec + "kubelet: {config: {cpuManagerPolicyOptions: {full-pcpus-only: 'true'}, cpuManagerPolicy: static, reservedSystemCPUs: '0'}}":                                          "",
		initSpec + "kubelet: {config: {healthzPort: 10250}}":                                                                                                                               "error spec.kubelet.config.healthzPort: is the port of port",
		initSpec + "kubelet: {config: {readOnlyPort: 10248}}":                                                                                                                              "error spec.kubelet.config.readOnlyPort: is the port of healthzPort",
		initSpec + "kubelet: {config: {readOnlyPort: 0, healthzPort: 0}}":                                                                                                                  "warning spec.kubelet.config.healthzPort: turns off",
		workerSpec + "kubelet: {config: {imageServiceEndpoint: 'tcp://127.0.0.1:3735'}}":                                                                                                   "error spec.kubelet.config.imageServiceEndpoint: is no socket",
		workerSpec + "kubelet: {config: {imageServiceEndpoint: 'unix:///run/a.sock'}}":                                                                                                     "",
		initSpec + "kubeProxy: {config: {metricsBindAddress: '0.0.0.0:10256'}}":                                                                                                            "warning spec.kubeProxy.config.metricsBindAddress: has the port of healthzBindAddress",
		initSpec + "kubeProxy: {config: {metricsBindAddress: '127.0.0.1:10256', healthzBindAddress: '192.0.2.1:10256'}}":                                                                   "",
		initSpec + "kubeProxy: {config: {metricsBindAddress: '0.0.0.0:10249'}}":                                                                                                            "",
		initSpec + "kubeProxy: {config: {hostnameOverride: a}}":                                                                                                                            "warning spec.kubeProxy.config.hostnameOverride: has no effect",
		server + "args: [{name: requestheader-allowed-names, value: aggregator}]}":                                                                                                         "warning spec.apiServer.args[0].value: has not front-proxy-client",
		server + "args: [{name: requestheader-allowed-names, value: 'aggregator,front-proxy-client'}]}":                                                                                    "",
		server + "args: [{name: kubelet-certificate-authority, value: /var/lib/kubelet/pki/ca.crt}]}":                                                                                      "error spec.apiServer.args[0].value: is a file that the container does not have",
		server + "args: [{name: kubelet-certificate-authority, value: /etc/kubernetes/pki/ca.crt}]}":                                                                                       "warning spec.apiServer.args[0]: makes the API server refuse kubelets",
		server + "args: [{name: kubelet-certificate-authority, value: /etc/kubernetes/pki/ca.crt}]}\nkubelet: {serverTLSBootstrap: true}":                                                  "",
		initSpec + "etcd: {local: {args: [{name: listen-peer-urls, value: 'http://192.0.2.1:2380'}]}}":                                                                                     "warning spec.etcd.local.args[0].value: has an address without TLS",
		initSpec + "etcd: {external: {endpoints: ['http://192.0.2.1']}}":                                                                                                                   "error spec.etcd.external.endpoints[0]: has no port",
		workerSpec + "node: {criSocket: 'unix:///var/run/docker.sock'}":                                                                                                                    "error spec.node.criSocket: is of Docker",
		workerSpec + "node: {criSocket: 'unix:///var/run/cri-dockerd.sock'}":                                                                                                               "",
		operations + "{op: add, path: /spec/containers/1/command/-, value: --v=4}]'}]":                                                                                                     "error spec.patches[0].patch: the operation 1 names a container",
		operations + "{op: add, path: /spec/containers/-, value: {name: a, image: b}}, {op: add, path: /spec/containers/1/command, value: [a]}]'}]":                                        "",
		operations + "{op: add, path: /spec/containers/0/command/-, value: --v=4}]'}]":                                                                                                     "",
		pod + "hostNetwork: true, containers: [{name: c, image: i, ports: [{containerPort: 8080, hostPort: 80}]}]}}'}]":                                                                    "error spec.staticPods[0].manifest: has a hostPort of the container c",
		pod + "containers: [{name: c, image: i}], volumes: [{name: a, emptyDir: {}}, {name: a, emptyDir: {}}]}}'}]":                                                                        "error spec.staticPods[0].manifest: has two volumes named a",
		pod + "containers: [{name: c, image: i, volumeMounts: [{name: a, mountPath: \"/a:b\"}]}], volumes: [{name: a, emptyDir: {}}]}}'}]":                                                 "error spec.staticPods[0].manifest: ",
		pod + "containers: [{name: c, image: i, livenessProbe: {httpGet: {port: http}}}]}}'}]":                                                                                             "warning spec.staticPods[0].manifest: has a livenessProbe at a port with a name",
		pod + "containers: [{name: c, image: i, ports: [{name: http, containerPort: 80}], livenessProbe: {httpGet: {port: http}}}]}}'}]":                                                   "",
		strings.Replace(pod, "metadata: {name: p}", "metadata: {name: P_1}", 1) + "containers: [{name: c, image: i}]}}'}]":                                                                 "error spec.staticPods[0].manifest: has a name in its metadata",
		strings.Replace(pod, "metadata: {name: p}", "metadata: {name: etcd, namespace: kube-system}", 1) + "containers: [{name: c, image: i}]}}'}]":                                        "error spec.staticPods[0].manifest: is named as a pod of kubeadm",
		patch + "containers: [{name: kube-apiserver, command: [--v=4]}]}}'}]":                                                                                                              "error spec.patches[0].patch: replaces the command",
		patch + "containers: [{name: kube-apiserver, command: [kube-apiserver, --v=4]}]}}'}]":                                                                                              "warning spec.patches[0].patch: replaces the whole command",
		strings.Replace(patch, "patch: '{spec", "type: merge, patch: '{spec", 1) + "containers: [{name: kube-apiserver}]}}'}]":                                                             "error spec.patches[0].patch: replaces the list of containers",
		strings.Replace(patch, "patch: '{spec", "patch: '{kind: Deployment, spec", 1) + "terminationGracePeriodSeconds: 5}}'}]":                                                            "error spec.patches[0].patch: makes something else than a Pod",
		server + "volumes: [{name: a, hostPath: '/a', mountPath: '/a:b'}]}":                                                                                                                "error spec.apiServer.volumes[0]: is mounted at a path with a colon",
		workerSpec + "kubelet: {config: {tlsCertFile: /etc/a.crt, tlsPrivateKeyFile: ''}}":                                                                                                 "error spec.kubelet.config.tlsCertFile: needs tlsPrivateKeyFile",
		workerSpec + "kubelet: {config: {tlsCertFile: /etc/a.crt, tlsPrivateKeyFile: /etc/a.key}}":                                                                                         "",
		server + "args: [{name: enable-admission-plugins, value: 'NodeRestriction,AlwaysPullImages'}, {name: disable-admission-plugins, value: AlwaysPullImages}]}":                        "error spec.apiServer.args[1].value: has a plugin that enable-admission-plugins has",
		pod + "securityContext: {runAsUser: -1}, containers: [{name: c, image: i}]}}'}]":                                                                                                   "error spec.staticPods[0].manifest: spec.securityContext.runAsUser is below 0",
		pod + "securityContext: {runAsUser: 1000}, containers: [{name: c, image: i}]}}'}]":                                                                                                 "",
		pod + "hostNetwork: true, containers: [{name: c, image: i, ports: [{containerPort: 6443}]}]}}'}]":                                                                                  "warning spec.staticPods[0].manifest: has the port of the API server",
		pod + "hostNetwork: true, containers: [{name: c, image: i, ports: [{containerPort: 80, hostPort: 80}]}]}}'}]":                                                                      "",
		pod + "containers: [{name: c, image: i, ports: [{containerPort: 8080, hostPort: 80}]}]}}'}]":                                                                                       "",
		server + "volumes: [{name: k8s-certs, hostPath: /a}]}":                                                                                                                             "error spec.apiServer.volumes[0].name: is the name of the volume that kubeadm makes of /etc/kubernetes/pki",
		initSpec + "scheduler: {volumes: [{name: kubeconfig, hostPath: /a}]}":                                                                                                              "error spec.scheduler.volumes[0].name: is the name of the volume that kubeadm makes of /etc/kubernetes/scheduler.conf",
		manager + "controllers, value: 'bootstrapsigner,tokencleaner'}]}":                                                                                                                  "warning spec.controllerManager.args[0].value: runs no other controller",
		manager + "allocate-node-cidrs, value: 'true'}]}":                                                                                                                                  "error spec.controllerManager.args[0].value: needs the range of pods",
		manager + "allocate-node-cidrs, value: 'true'}, {name: cluster-cidr, value: 10.0.0.0/16}]}":                                                                                        "",
		manager + "allocate-node-cidrs, value: 'true'}]}\ncluster: {podSubnets: [10.244.0.0/16]}":                                                                                          "",
		manager + "node-monitor-grace-period, value: 5s}]}":                                                                                                                                "warning spec.controllerManager.args[0].value: is not longer than the 10s",
		initSpec + "cluster: {podSubnets: [10.244.0.0/24]}":                                                                                                                                "warning spec.cluster.podSubnets[0]: has the range of one node, /24",
		initSpec + "cluster: {caCertificateValidity: 24h}":                                                                                                                                 "warning spec.cluster.caCertificateValidity: is shorter than certificateValidity",
		workerSpec + "node: {criSocket: 'unix:///var/run/dockershim.sock'}":                                                                                                                "error spec.node.criSocket: is of dockershim",
		workerSpec + "kubelet: {systemReserved: {memory: 500m}}":                                                                                                                           "warning spec.kubelet.systemReserved.memory: is in thousandths of a byte",
		workerSpec + "kubelet: {systemReserved: {cpu: 500m}}":                                                                                                                              "",
		patch + "containers: [{name: kube-apiserver, resources: {requests: {cpu: 1 core}}}]}}'}]":                                                                                          "error spec.patches[0].patch: has an amount of cpu",
		patch + "containers: [{name: kube-apiserver, resource: {requests: {cpu: 100m}}}]}}'}]":                                                                                             "error spec.patches[0].patch: spec.containers[0].resource",
		patch + "containers: [{name: kube-apiserver, resources: {requests: {cpu: 100m}}}]}}'}]":                                                                                            "",
		patch + "volumes: [{name: a, $patch: delete}]}}'}]":                                                                                                                                "",
		server + "volumes: [{name: ca-certs, hostPath: /a, mountPath: /etc/ssl/certs}]}":                                                                                                   "",
		server + "volumes: [{name: a, hostPath: /a}, {name: b, hostPath: /b, mountPath: /a}]}":                                                                                             "error spec.apiServer.volumes[1].mountPath: is where the volume a is mounted",
		initSpec + "cluster: {endpoint: '0.0.0.0:6443'}":                                                                                                                                   "error spec.cluster.endpoint: is no address of a machine",
		initSpec + "cluster: {endpoint: 'localhost:6443'}":                                                                                                                                 "warning spec.cluster.endpoint: is this machine for each machine",
		workerSpec + "node: {providerID: i-0123456789}":                                                                                                                                    "warning spec.node: the provider ID has no NAME:// at its beginning",
		workerSpec + "node: {providerID: 'aws:///eu-west-1a/i-01'}":                                                                                                                        "",
		initSpec + "kubeProxy: {config: {ipvs: {strictARP: true}}}":                                                                                                                        "warning spec.kubeProxy.config.ipvs: has no effect without spec.kubeProxy.mode: ipvs",
		initSpec + "kubeProxy: {mode: ipvs, config: {ipvs: {strictARP: true, scheduler: lc}}}":                                                                                             "",
		initSpec + "kubeProxy: {mode: ipvs, config: {ipvs: {scheduler: roundrobin}}}":                                                                                                      "error spec.kubeProxy.config.ipvs.scheduler: is not a value of this field",
		initSpec + "cluster: {podSubnets: [10.244.0.0/16]}\nkubeProxy: {config: {clusterCIDR: 10.1.0.0/16}}":                                                                               "warning spec.kubeProxy.config.clusterCIDR: is not spec.cluster.podSubnets",
		initSpec + "cluster: {podSubnets: [192.168.0.0/16]}\nnode: {ip: 192.168.1.10}":                                                                                                     "warning spec.cluster.podSubnets: 192.168.0.0/16 has an address of this node",
		initSpec + "cluster: {podSubnets: [10.0.0.0/12], serviceSubnets: [10.128.0.0/16], endpoint: '10.1.2.3:6443'}":                                                                      "warning spec.cluster.podSubnets: 10.0.0.0/12 has the address of spec.cluster.endpoint",
		initSpec + "node: {register: false}":                                                                                                                                               "warning spec.node.register: leaves a control plane without a Node",
		initSpec + "node: {register: false}\nskipPhases: [mark-control-plane]":                                                                                                             "",
		workerSpec + "node: {register: false}":                                                                                                                                             "",
		initSpec + "etcd: {local: {args: [{name: listen-client-urls, value: 'https://192.0.2.1:2379'}]}}":                                                                                  "error spec.etcd.local.args[0].value: has no loopback address",
		initSpec + "etcd: {local: {args: [{name: listen-client-urls, value: 'https://127.0.0.1:2379,https://192.0.2.1:2379'}]}}":                                                           "",
	} {
		said(t, text, want)
	}
}

// said compares what is said of a specification with the beginning of the one line that is wanted, or nothing.
func said(t *testing.T, text, want string) {
	t.Helper()
	s, violations, err := spec(t, text)
	require.NoError(t, err, text)
	got := ""
	for _, w := range s.Warnings {
		got += "warning " + w.Field + ": " + w.Message + "\n"
	}
	for _, v := range violations {
		got += "error " + v.Field + ": " + v.Message + "\n"
	}
	if want == "" {
		assert.Empty(t, got, text)
		return
	}
	assert.True(t, strings.HasPrefix(got, want), "%s\n%s", text, got)
	assert.Equal(t, 1, strings.Count(got, "\n"), "%s\n%s", text, got)
}
