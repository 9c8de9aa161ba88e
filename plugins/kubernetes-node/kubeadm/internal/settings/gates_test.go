package settings

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGates: a feature gate that the versions of the document do not have, or that they lock to another value, is an error with its remedy;
// one that a kubelet of an older version has is a warning.
func TestGates(t *testing.T) {
	t.Parallel()
	at := func(version string) string { return "role: controlPlaneInit\nkubernetesVersion: " + version + "\n" }
	server := func(value string) string { return "apiServer: {args: [{name: feature-gates, value: '" + value + "'}]}" }
	for text, want := range map[string]string{
		at("v1.37.1") + server("KubeletInUserNamespace=true,AllBeta=false,kube:AllAlpha=true"):                                                               "",
		at("v1.37.1") + server("KubeletInUserNamespac=true"):                                                                                                 "spec.apiServer.args[0].value: KubeletInUserNamespac is not a feature gate of Kubernetes; did you mean KubeletInUserNamespace?",
		at("v1.37.1") + server("KubeletInUserNamespace"):                                                                                                     "spec.apiServer.args[0].value: is not a list of feature gates; write it like NodeSwap=true,AllBeta=false",
		at("v1.35.5") + server("UserNamespacesPodSecurityStandards=true"):                                                                                    "spec.apiServer.args[0].value: UserNamespacesPodSecurityStandards is a feature gate until Kubernetes 1.34, with which 1.35 does not start; remove it",
		at("v1.34.8") + server("UserNamespacesPodSecurityStandards=true"):                                                                                    "",
		at("v1.37.1") + "kubeProxy: {config: {featureGates: {NFTablesProxyMode: false}}}":                                                                    "spec.kubeProxy.config.featureGates.NFTablesProxyMode: NFTablesProxyMode is always true from Kubernetes 1.33 on; remove it",
		at("v1.37.1") + "kubelet: {config: {featureGates: {NoSuchGate: true}}}":                                                                              "spec.kubelet.config.featureGates.NoSuchGate: NoSuchGate is not a feature gate of Kubernetes; remove it, or correct its spelling",
		at("v1.37.1") + "patches: [{target: kubeletconfiguration, patch: '{featureGates: {NoSuchGate: true}}'}]":                                             "spec.patches[0].patch: NoSuchGate is not a feature gate of Kubernetes; remove it, or correct its spelling",
		at("v1.37.1") + `patches: [{target: kubeletconfiguration, type: json, patch: '[{"op": "add", "path": "/featureGates/NoSuchGate", "value": true}]'}]`: "spec.patches[0].patch: NoSuchGate is not a feature gate of Kubernetes; remove it, or correct its spelling",
		at("v1.37.1") + "node: {kubeletArgs: [{name: feature-gates, value: NoSuchGate=true}]}":                                                               "spec.node.kubeletArgs[0].value: NoSuchGate is not a feature gate of Kubernetes; remove it, or correct its spelling",
		at("v1.37.1") + "providerConfig: {featureGates: {RootlessControlPlan: true}}":                                                                        "spec.providerConfig.featureGates.RootlessControlPlan: is not a feature gate of kubeadm; did you mean RootlessControlPlane?",
		at("v1.37.1") + "providerConfig: {featureGates: {RootlessControlPlane: true}}":                                                                       "",
	} {
		_, violations, err := spec(t, text)
		require.NoError(t, err, text)
		var shown []string
		for _, v := range violations {
			shown = append(shown, v.Field+": "+v.Message+"; "+v.Hint)
		}
		assert.Equal(t, want, strings.Join(shown, "\n"), text)
	}
	s, violations, err := spec(t, at("v1.35.5")+"kubelet: {config: {featureGates: {UserNamespacesPodSecurityStandards: true}}}")
	require.NoError(t, err)
	require.Empty(t, violations, "a kubelet of 1.34 has it")
	require.Len(t, s.Warnings, 1)
	assert.Equal(t, "spec.kubelet.config.featureGates.UserNamespacesPodSecurityStandards", s.Warnings[0].Field)
	assert.Contains(t, s.Warnings[0].Message, "until Kubernetes 1.34")
}
