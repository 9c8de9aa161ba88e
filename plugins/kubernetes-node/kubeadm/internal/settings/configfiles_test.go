package settings

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestConfigFiles: a file of the document with which a component does not start is refused.
func TestConfigFiles(t *testing.T) {
	t.Parallel()
	const key = "c2VjcmV0IGlzIHNlY3VyZSwgb3IgaXMgaXQ/ISEhISE=" // 32 bytes
	const apis = "apiserver.config.k8s.io/"
	component := func(name, argument, content string) string {
		volume := "volumes: [{name: site, hostPath: /etc/kubernetes/site, mountPath: /mnt}]"
		return initSpec + name + ": {args: [{name: " + argument + ", value: /mnt/a.yaml}], " + volume + "}\nfiles: [{path: /etc/kubernetes/site/a.yaml, content: '" + content + "'}]"
	}
	audit := func(content string) string {
		return strings.Replace(component("apiServer", "audit-policy-file", content), "args: [", "args: [{name: audit-log-path, value: '-'}, ", 1)
	}
	cipher := func(resources string) string {
		return component("apiServer", "encryption-provider-config", "{apiVersion: "+apis+"v1, kind: EncryptionConfiguration, resources: "+resources+"}")
	}
	admission := func(level string) string {
		return component("apiServer", "admission-control-config-file", "{apiVersion: "+apis+"v1, kind: AdmissionConfiguration, plugins: [{name: PodSecurity, "+
			"configuration: {apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, defaults: {enforce: "+level+"}}}]}")
	}
	file := func(what, content string) string {
		return component("apiServer", what+"-config", "{apiVersion: "+apis+content+"}")
	}
	scheduler := func(version, rest string) string {
		return component("scheduler", "config", "{apiVersion: kubescheduler.config.k8s.io/"+version+", kind: KubeSchedulerConfiguration"+rest+"}")
	}
	typed := func(kind, path string) string {
		return initSpec + "apiServer: {volumes: [{name: site, hostPath: " + path + ", mountPath: /mnt, pathType: " + kind + "}]}\nfiles: [{path: /etc/kubernetes/site/a, content: a}]"
	}
	for text, want := range map[string]string{
		audit("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}"):                                    "",
		audit("{apiVersion: audit.k8s.io/v1beta1, kind: Policy, rules: [{level: Metadata}]}"):                               "is of a kind or a version",
		audit("{apiVersion: v1, kind: ConfigMap}"):                                                                          "is of a kind or a version",
		audit("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: []}"):                                                     "has no rules",
		audit("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: metadata}]}"):                                    "has a rule without a level",
		cipher("[{resources: [secrets], providers: [{aescbc: {keys: [{name: k, secret: " + key + "}]}}, {identity: {}}]}]"): "",
		cipher("[{resources: [secrets], providers: [{aescbc: {keys: [{name: k, secret: c2hvcnQ=}]}}, {identity: {}}]}]"):    "has a key of aescbc",
		cipher("[{resources: [secrets], providers: [{secretbox: {keys: []}}]}]"):                                            "has a key of secretbox",
		cipher("[{resources: [secrets], providers: [{kms: {name: k, endpoint: unix:///run/k.sock}}]}]"):                     "",
		cipher("[]"):                       "has no resources",
		cipher("[{resources: [secrets]}]"): "has resources without names",
		component("apiServer", "encryption-provider-config", "{apiVersion: v1, kind: EncryptionConfig, resources: [{resources: [secrets], providers: [{identity: {}}]}]}"): "",
		component("apiServer", "authentication-config", "{apiVersion: "+apis+"v1alpha2, kind: AuthenticationConfiguration}"):                                               "is of a kind or a version",
		component("apiServer", "authentication-config", "{apiVersion: "+apis+"v1, kind: AuthenticationConfiguration}"):                                                     "",
		component("apiServer", "authentication-config", "not: [closed"):                                                                                                    "",
		admission("restricted"):  "",
		admission("strict"):      "has a level in defaults.enforce",
		scheduler("v1beta2", ""): "is of a kind or a version",
		scheduler("v1", ""):      "has no clientConnection.kubeconfig",
		scheduler("v1", ", clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}"):                                                    "",
		audit("{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestRecieved], rules: [{level: None}]}"):                            "has a stage in omitStages",
		audit("{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], rules: [{level: None}]}"):                            "",
		audit("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: None}]}', when: afterKubernetes, owner: 'root:root"):                "makes a file after Kubernetes",
		cipher("[{resources: [secrets], providers: [{aescbcc: {}}]}]"):                                                                         "has an item of providers that is not one provider",
		cipher("[{resources: [secrets], providers: [{kms: {apiVersion: v2, name: k, endpoint: tcp://192.0.2.1:1}}]}]"):                         "has a kms whose endpoint",
		file("authentication", "v1, kind: AuthenticationConfiguration, jwt: [{issuer: {url: http://a, audiences: [b]}}]"):                      "has an issuer of jwt",
		file("authentication", "v1, kind: AuthenticationConfiguration, jwt: [{issuer: {url: https://a, audiences: [b]}}]"):                     "",
		file("authentication", "v1, kind: AuthenticationConfiguration, jtw: []"):                                                               "has a key at its beginning",
		file("authorization", "v1, kind: AuthorizationConfiguration, authorizers: []"):                                                         "has no authorizers",
		file("authorization", "v1, kind: AuthorizationConfiguration, authorizers: [{type: rbac, name: a}]"):                                    "has an authorizer without a name",
		file("authorization", "v1, kind: AuthorizationConfiguration, authorizers: [{type: Node, name: a}, {type: RBAC, name: b}]"):             "",
		component("apiServer", "tracing-config-file", "{apiVersion: "+apis+"v1, kind: TracingConfiguration, samplingRatePerMillion: 2000000}"): "has a samplingRatePerMillion",
		component("apiServer", "tracing-config-file", "{apiVersion: "+apis+"v1, kind: TracingConfiguration, samplingRatePerMillion: 100}"):     "",
		admission("baseline, enforce-version: 1.30"):                                                                                           "has a version in defaults.enforce-version",
		admission("baseline, enforce-version: v1.30"):                                                                                          "",
		scheduler("v1", ", clientConnection: {kubeconfig: /a}, profiles: [{schedulerName: a}, {schedulerName: a}]"):                            "has two profiles",
		scheduler("v1", ", clientConnection: {kubeconfig: /a}, profile: []"):                                                                   "has a key at its beginning",
		typed("Directory", "/etc/kubernetes/site/a"):                                                                                           "is not what spec.files[0] makes",
		typed("File", "/etc/kubernetes/site"):                                                                                                  "is not what spec.files[0] makes",
		typed("Directory", "/etc/kubernetes/site"):                                                                                             "",
		typed("FileOrCreate", "/etc/kubernetes/site/a"):                                                                                        "",
	} {
		_, violations, err := spec(t, text)
		require.NoError(t, err, text)
		got := ""
		for _, v := range violations {
			got += v.Message + "\n"
		}
		assert.True(t, strings.HasPrefix(got, want) && (want == "") == (got == ""), "%s\n%s", text, got)
		assert.NotContains(t, got, "c2hvcnQ")
	}
}
