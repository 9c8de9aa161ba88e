package v1alpha1_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/contract/v1alpha1/schema"
)

// TestSysctlProfiles: each key of a profile is one.
func TestSysctlProfiles(t *testing.T) {
	t.Parallel()
	inFile[v1alpha1.SysctlProfile](t, v1alpha1.KindSysctl, rules(v1alpha1.KindSysctl)["profiles"].Items.Enum)
	for name, profile := range v1alpha1.SysctlProfiles() {
		for text := range profile.Parameters {
			if key, err := v1alpha1.ParseSysctlKey(text); err != nil || key.String() != text {
				t.Errorf("%s: %s: %v", name, text, err)
			}
		}
	}
}

// TestTimesyncProfiles: what a profile adds are sources as a document has them.
func TestTimesyncProfiles(t *testing.T) {
	t.Parallel()
	inFile[v1alpha1.TimesyncProfile](t, v1alpha1.KindTimesync, rules(v1alpha1.KindTimesync)["profile"].Enum)
	for name, profile := range v1alpha1.TimesyncProfiles() {
		require.NotEmpty(t, len(profile.Servers)+len(profile.RefClocks), name)
		spec := v1alpha1.TimesyncSpec{Servers: profile.Servers}
		for _, clock := range profile.RefClocks {
			spec.RefClocks = append(spec.RefClocks, clock.RefClock)
		}
		doc, err := json.Marshal(v1alpha1.Timesync{Spec: spec})
		require.NoError(t, err)
		require.Empty(t, schema.RulesFor(v1alpha1.APIVersion, v1alpha1.KindTimesync).Violations(doc), name)
	}
}

// TestKubernetesNodeProfiles: each rule says what it sets and why.
func TestKubernetesNodeProfiles(t *testing.T) {
	t.Parallel()
	inFile[[]v1alpha1.KubernetesNodeRule](t, v1alpha1.KindKubernetesNode, rules(v1alpha1.KindKubernetesNode)["profiles"].Items.Enum)
	targets := []string{"apiServer", "controllerManager", "scheduler", "etcd", "kubelet", "kubeProxy", "file", "host name"}
	for name, profile := range v1alpha1.KubernetesNodeProfiles() {
		for _, rule := range profile {
			require.Contains(t, targets, rule.Target, name)
			require.NotContains(t, []string{rule.ID, rule.Name, rule.Meaning}, "", name)
			if rule.Target == "kubelet" || rule.Target == "kubeProxy" {
				require.True(t, json.Valid([]byte(rule.Value)), "%s: %s", name, rule.ID)
			}
		}
	}
}

func rules(kind string) map[string]*schema.Rules {
	return schema.RulesFor(v1alpha1.APIVersion, kind).Properties
}

// inFile compares the profiles in the file of a kind with the names that its field has, and with the fields of P.
func inFile[P any](t *testing.T, kind string, names []string) {
	t.Helper()
	text, err := os.ReadFile("profiles/" + kind + ".json")
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var all map[string]P
	require.NoError(t, decoder.Decode(&all))
	require.NotEmpty(t, all)
	require.ElementsMatch(t, slices.Collect(maps.Keys(all)), slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" }))
}
