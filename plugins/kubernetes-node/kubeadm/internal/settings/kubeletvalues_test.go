package settings

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// TestKubeletConfig: the plugin refuses what the kubelet does not start with, and what it drops. The test of testenv/kubernetesnode compares the
// table with the kubelet.
func TestKubeletConfig(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("testdata/kubelet.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(table)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		config, _, _ := strings.Cut(strings.TrimSpace(line), " # ")
		result, config, _ := strings.Cut(config, " ")
		_, violations, err := spec(t, initSpec+"kubelet: {config: "+config+"}")
		require.NoError(t, err)
		assert.Equal(t, result == "yes" || result == "later", len(violations) == 0, "%s%s", line, shown(violations))
		for _, v := range violations {
			assert.True(t, strings.HasPrefix(v.Field, "spec.kubelet.config"), v.Field)
			assert.NotEmpty(t, v.Message, line)
		}
	}
}

// TestFieldsOfKubernetes: an unknown field, a value of another type, and one that the versions of the cluster do not have.
func TestFieldsOfKubernetes(t *testing.T) {
	t.Parallel()
	kubelet := func(patch string) string { return "patches: [{target: kubeletconfiguration, " + patch + "}]" }
	for text, want := range map[string]string{
		initSpec + "kubelet: {config: {podsPerCor: 1}}":                                                                               "spec.kubelet.config.podsPerCor: is not a field of KubeletConfiguration; did you mean podsPerCore?",
		initSpec + "kubelet: {config: {authentication: {X509: {}}}}":                                                                  "spec.kubelet.config.authentication.X509: is not a field of KubeletConfiguration; did you mean x509?",
		initSpec + "kubelet: {config: {enabled: true}}":                                                                               "spec.kubelet.config.enabled: is not a field of KubeletConfiguration; remove it, or correct its spelling and its indentation",
		workerSpec + "kubelet: {config: {evictionHard: {memory.available: 1Gi}}}":                                                     "spec.kubelet.config.evictionHard: is set by spec.kubelet.evictionHard; move it there",
		initSpec + "kubelet: {evictionHard: {memory.available: 150%}}":                                                                `spec.kubelet.evictionHard["memory.available"]: is not a quantity of this field; write it like 5% or 100Mi`,
		initSpec + "kubelet: {evictionHard: {memory.available: '0'}}":                                                                 `spec.kubelet.evictionHard["memory.available"]: is not a quantity of this field; write it like 5% or 100Mi`,
		initSpec + "kubelet: {evictionHard: {memory.available: 0%}}":                                                                  "",
		initSpec + "kubelet: {config: {tlsCurvePreferences: [29]}}":                                                                   "",
		strings.Replace(initSpec, "37.1", "35.1", 1) + "kubelet: {config: {tlsCurvePreferences: [29]}}":                               "spec.kubelet.config.tlsCurvePreferences: is a field from Kubernetes 1.36 on, and older ones ignore it; remove it, or use a newer version",
		initSpec + "kubeProxy: {config: {iptable: {}}}":                                                                               "spec.kubeProxy.config.iptable: is not a field of KubeProxyConfiguration; did you mean iptables?",
		initSpec + "kubeProxy: {config: {ipvs: {strictARP: 'yes'}}}":                                                                  "spec.kubeProxy.config.ipvs.strictARP: must be true or false; write it without quotes",
		initSpec + "kubeProxy: {config: {conntrack: {maxPerCore: 32768, tcpCloseWaitTimeout: 1h0m0s}, clientConnection: {qps: 2.5}}}": "",
		// patches
		workerSpec + kubelet("patch: 'podsPerCor: 1'"): "spec.patches[0].patch: podsPerCor is not a field of KubeletConfiguration; did you mean podsPerCore?",
		workerSpec + kubelet("patch: '{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, podsPerCore: \"1\"}'"): "spec.patches[0].patch: podsPerCore must be a whole number; write it in digits without quotes",
		workerSpec + kubelet("patch: '{\"$patch\": merge, evictionSoft: null, memorySwap: {swapBehavior: LimitedSwap}}'"):            "",
		workerSpec + kubelet("type: json, patch: '[{op: add, path: /memorySwap/swapBehaviour, value: LimitedSwap}]'"):                "spec.patches[0].patch: /memorySwap/swapBehaviour is not a field of KubeletConfiguration; correct the path",
		workerSpec + kubelet("type: json, patch: '[{op: replace, path: /maxOpenFiles, value: a}]'"):                                  "spec.patches[0].patch: /maxOpenFiles must be a whole number; write it in digits without quotes",
		workerSpec + kubelet("type: json, patch: '[{op: set, path: /maxOpenFiles, value: 1}, {op: add, value: 1}, {op: add, path: maxOpenFiles, value: 1}]'"): "spec.patches[0].patch: the operation 1 has no valid op; use add, remove or replace\n" +
			"spec.patches[0].patch: the operation 2 has no path that begins with /; write it like /metadata/labels/a\n" +
			"spec.patches[0].patch: the operation 3 has no path that begins with /; write it like /metadata/labels/a",
		workerSpec + kubelet("type: json, patch: '[{op: add, path: /evictionHard/memory.available, value: 5%}, {op: add, path: /clusterDNS/-, value: 10.0.0.1}, {op: remove, path: /registerWithTaints/0/key}]'"): "",
		initSpec + "patches: [{target: etcd, type: json, patch: '[{op: add, path: /anything, value: 1}]'}]":                                                                                                       "",
	} {
		_, violations, err := spec(t, text)
		require.NoError(t, err)
		var lines []string
		for _, v := range violations {
			lines = append(lines, v.Field+": "+v.Message+"; "+v.Hint)
		}
		assert.Equal(t, want, strings.Join(lines, "\n"), text)
	}
}

// TestUnknownOfTheCluster: what the configuration of the cluster or a patch may add is a warning on a node that joins, or nothing.
func TestUnknownOfTheCluster(t *testing.T) {
	t.Parallel()
	const soft, period = "evictionSoft: {memory.available: 500Mi}", "evictionSoftGracePeriod: {memory.available: 1m}"
	const patch = "\npatches: [{target: kubeletconfiguration, patch: '{" + period + "}'}]"
	for text, want := range map[string][2]int{ // violations, warnings
		initSpec + "kubelet: {config: {" + soft + "}}":                                                      {1, 0},
		initSpec + "kubelet: {config: {" + soft + "}}" + patch:                                              {},
		workerSpec + "kubelet: {config: {" + soft + "}}":                                                    {0, 1},
		workerSpec + "kubelet: {config: {" + soft + ", " + period + "}}":                                    {},
		workerSpec + "kubelet: {config: {" + soft + "}}" + patch:                                            {},
		workerSpec + "kubelet: {config: {imageGCHighThresholdPercent: 70}}":                                 {0, 1},
		workerSpec + "kubelet: {config: {imageGCHighThresholdPercent: 70, imageGCLowThresholdPercent: 75}}": {1, 0},
	} {
		s, violations, err := spec(t, text)
		require.NoError(t, err)
		assert.Equal(t, want, [2]int{len(violations), len(s.Warnings)}, "%s %v %v", text, violations, s.Warnings)
	}
}

// FuzzKubeletConfig: no mapping makes the checks end with a panic.
func FuzzKubeletConfig(f *testing.F) {
	for _, seed := range []string{
		`{"enforceNodeAllocatable": [{}], "reservedMemory": [1, {"limits": {"memory": {}}}]}`, `{"evictionSoft": {"memory.available": {}}, "logging": []}`,
		`{"staticPodURLHeader": {"a": [1]}, "clusterDNS": [{}], "cpuCFSQuotaPeriod": {}}`, `{"featureGates": null, "podsPerCore": 1e99, "memoryThrottlingFactor": -0.5}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var r resolver
		r.spec.Role, r.result.Version.Minor = Init, 37
		r.result.Kubelet = objectOf([]byte(text))
		r.spec.Kubelet = &v1alpha1.Kubelet{Config: json.RawMessage(text)}
		r.spec.Patches = []v1alpha1.ComponentPatch{{Target: "etcd", Type: "json", Patch: "[" + text + "]"}}
		if r.kubeletFields(); len(r.violations) > 0 && r.violations[0].Message == "" {
			t.Fatal("a violation without a message")
		}
	})
}
