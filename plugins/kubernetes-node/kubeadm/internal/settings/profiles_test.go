package settings

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	DISA = "disa-k8s-v2r6"
	CIS  = "cis-1.11"
)

var update = flag.Bool("update", false, "write the table of profiles")

// TestProfilesInREADME: the README lists every rule.
func TestProfilesInREADME(t *testing.T) {
	t.Parallel()
	const path, begin, end = "../../README.md", "/settings -update -->\n", "<!-- end of profiles -->"
	var table strings.Builder
	table.WriteString("\n| profile | maps to | setting | meaning |\n|---|---|---|---|\n")
	for _, r := range rulesOf([]string{DISA, CIS}) {
		setting := fmt.Sprintf("%s `%s` = `%s`", r.Target, r.Name, r.Value)
		switch r.Target {
		case "host name":
			setting = "no `hostname-override`"
		case "file":
			setting = fmt.Sprintf("mode %s of `%s`", r.Value, r.Name)
		case "kubelet":
			if r.Value == "null" {
				setting = "kubelet without `" + r.Name + "`"
			}
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", r.Profile, r.ID, setting, r.Meaning)
	}
	table.WriteString("\n")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	old, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(before+begin+table.String()+end+after), 0o644))
		return
	}
	assert.Equal(t, table.String(), old)
}

// TestRules: rules that profiles share agree, so that both can be given, and each contradiction is found.
func TestRules(t *testing.T) {
	t.Parallel()
	values, seen := map[string]string{}, map[string]bool{}
	for _, r := range rulesOf([]string{DISA, CIS}) {
		assert.False(t, seen[r.Profile+r.ID], "%s is there twice", r.ID)
		seen[r.Profile+r.ID] = true
		key := r.Target + " " + r.Name
		if old, ok := values[key]; ok {
			assert.Equal(t, old, r.Value, key)
		}
		values[key] = r.Value
		assert.Equal(t, r.Target == "kubelet", r.Flag != "", r.ID)
	}
}

func TestContradictions(t *testing.T) {
	t.Parallel()
	const both = "\nprofiles: [disa-k8s-v2r6, cis-1.11]"
	contradicts := func(field, id, profile string) string {
		return field + ": contradicts " + id + " of the profile " + profile
	}
	for text, want := range map[string]string{
		initSpec + "profiles: [a, cis-1.11, cis-1.11]": "spec.profiles[2]: is the same as spec.profiles[1]",
		initSpec + "apiServer: {args: [{name: tls-min-version, value: VersionTLS13}, {name: profiling, value: 'false'}]}" + both: "",
		initSpec + "apiServer: {args: [{name: tls-min-version, value: VersionTLS11}]}\nscheduler: {args: [{name: profiling, value: 'true'}]}" + both: contradicts("spec.apiServer.args[0]", "CNTR-K8-000170", DISA) + "\n" +
			contradicts("spec.scheduler.args[0]", "1.4.1", CIS),
		initSpec + "etcd: {local: {args: [{name: auto-tls, value: 'true'}]}}\nprofiles: [cis-1.11]": contradicts("spec.etcd.local.args[0]", "2.3", CIS),
		initSpec + "etcd: {external: {endpoints: ['http://a:1']}}" + both:                           "",
		workerSpec + "kubelet: {protectKernelDefaults: false, config: {readOnlyPort: 10255, authentication: {anonymous: {enabled: true}}, authorization: a, staticPodPath: /a}}\nprofiles: [disa-k8s-v2r6]": contradicts("spec.kubelet.config.readOnlyPort", "CNTR-K8-000330", DISA) + "\n" +
			contradicts("spec.kubelet.config.authentication.anonymous.enabled", "CNTR-K8-000370", DISA) + "\n" +
			contradicts("spec.kubelet.config.authorization", "CNTR-K8-000380", DISA) + "\n" +
			contradicts("spec.kubelet.config.staticPodPath", "CNTR-K8-000440", DISA) + "\n" +
			contradicts("spec.kubelet.protectKernelDefaults", "CNTR-K8-001620", DISA) + "\nspec.kubelet.config.authorization: must be a mapping",
		initSpec + "kubelet: {protectKernelDefaults: true, config: {readOnlyPort: 0, streamingConnectionIdleTimeout: 5m0s, staticPodPath: /etc/kubernetes/manifests}}" + both: "",
		workerSpec + "node: {kubeletArgs: [{name: pod-manifest-path, value: /a}]}\nprofiles: [disa-k8s-v2r6]":                                                                 contradicts("spec.node.kubeletArgs[0]", "CNTR-K8-000440", DISA),
		workerSpec + "patches: [{target: kubeletconfiguration, patch: 'seccompDefault: false'}, {target: kubeletconfiguration, type: json, patch: '[{\"op\": \"add\", \"path\": \"/authorization/mode\", \"value\": \"AlwaysAllow\"}]'}]\nprofiles: [cis-1.11]": contradicts("spec.patches[1].patch", "4.2.2", CIS) + "\n" +
			contradicts("spec.patches[0].patch", "4.2.14", CIS),
		initSpec + "kubeProxy: {config: {metricsBindAddress: '0.0.0.0:10249'}}\nprofiles: [cis-1.11]": contradicts("spec.kubeProxy.config.metricsBindAddress", "4.3.1", CIS),
		initSpec + "kubeProxy: {skip: true}\nprofiles: [cis-1.11]":                                    "",
	} {
		s, violations, err := spec(t, text)
		require.NoError(t, err)
		assert.Equal(t, want, shown(violations), text)
		assert.Equal(t, want == "", s.WithHostName(), text)
	}
}
