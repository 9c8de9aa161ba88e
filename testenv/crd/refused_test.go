package crd_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/contract/v1alpha1/schema"
)

// TestCustomResources starts the API server once.
//
//machineadm:core
func TestCustomResources(t *testing.T) {
	t.Parallel()
	c := start(t)
	for name, test := range map[string]func(*testing.T, client.Client){
		"definitions are established": testEstablished, "samples are taken and read back": testSamples,
		"large numbers": testNumbers, "every bound refuses": testBounds, "every rule refuses": testRules, "a secret is a reference": testSecrets,
		"edges are taken": testEdges, "fields one by one": testFields, "examples are taken": testExamples,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

func testEstablished(t *testing.T, c client.Client) {
	for kind, d := range definitions(t) {
		found := &apiextensionsv1.CustomResourceDefinition{}
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(d), found))
		status := map[apiextensionsv1.CustomResourceDefinitionConditionType]apiextensionsv1.ConditionStatus{}
		for _, condition := range found.Status.Conditions {
			status[condition.Type] = condition.Status
		}
		assert.Equal(t, apiextensionsv1.ConditionTrue, status[apiextensionsv1.Established], kind)
		assert.NotEqual(t, apiextensionsv1.ConditionTrue, status[apiextensionsv1.NonStructuralSchema], kind)
	}
}

// refusal returns the errors of the API server by field.
func refusal(t *testing.T, c client.Client, o *unstructured.Unstructured) map[string]string {
	t.Helper()
	err := c.Create(t.Context(), o, client.DryRunAll)
	var status apierrors.APIStatus
	require.True(t, errors.As(err, &status), "%s is taken: %v", o.GetKind(), o.Object["spec"])
	fields := map[string]string{}
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			fields[cause.Field] += cause.Message
		}
	}
	return fields
}

// nested returns the value below a path such as spec.a.b[0].c[k], as the server writes it with a dot before k.
func nested(at string, value any) (spec any, field string) {
	steps := regexp.MustCompile(`\.\w+|\[\w\]`).FindAllString(strings.TrimPrefix(at, "spec"), -1)
	for _, step := range slices.Backward(steps) {
		switch step {
		case "[0]":
			value = []any{value}
		default:
			value = map[string]any{strings.Trim(step, ".[]"): value}
		}
	}
	return value, strings.ReplaceAll(at, "[k]", ".k")
}

// testBounds: each enum, pattern and limit of a definition refuses a value beyond it, and names the field. The JSON schema of the document
// refuses it at the same field by the same rule.
func testBounds(t *testing.T, c client.Client) {
	counts, marks := map[string]int{}, map[string]int{}
	for _, kind := range contract.MachineKinds() {
		visit("spec", schemaOf(definitions(t)[kind]).Properties["spec"], func(at string, s apiextensionsv1.JSONSchemaProps, _ bool) {
			for name, value := range beyond(s) {
				counts[name]++
				spec, field := nested(at, value)
				got := refusal(t, c, object(kind, "bound", spec))
				assert.Contains(t, got, field, "%s %s", kind, name)
				if documented(at, name, s) {
					marks[kind+" "+name]++
					assert.Contains(t, marked(t, kind, spec), "/"+strings.ReplaceAll(strings.NewReplacer("[", ".", "]", "").Replace(at), ".", "/")+" "+name)
				}
			}
		})
	}
	t.Logf("bounds: %v, and of documents: %v", counts, marks)
	assert.Greater(t, len(marks), 10)
	for _, name := range []string{"enum", "pattern", "minimum", "maximum", "maxItems", "minItems", "minLength", "maxLength", "maxProperties"} {
		assert.Positive(t, counts[name], name)
	}
}

// documented says whether a rule of a definition is one of the document too. Not the rules of references to Secrets, of integers that may be
// strings, and of the cost of rules.
func documented(at, rule string, s apiextensionsv1.JSONSchemaProps) bool {
	return !strings.Contains(at, "secretKeyRef") && !s.XIntOrString && rule != "maxItems" && rule != "maxProperties"
}

// marked returns what the JSON schema of a kind finds wrong in a document, as the JSON pointers of fields and the names of rules.
func marked(t *testing.T, kind string, spec any) (all []string) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.For(contract.APIVersion, kind)))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("schema.json", value))
	compiled, err := compiler.Compile("schema.json")
	require.NoError(t, err)
	text, err := json.Marshal(object(kind, "bound", spec).Object)
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	found, _ := errors.AsType[*jsonschema.ValidationError](compiled.Validate(document))
	require.NotNil(t, found)
	for _, unit := range found.BasicOutput().Errors {
		all = append(all, unit.InstanceLocation+" "+path.Base(unit.KeywordLocation))
	}
	return all
}

// beyond returns a value beyond each limit of a schema.
func beyond(s apiextensionsv1.JSONSchemaProps) map[string]any {
	values := map[string]any{}
	if len(s.Enum) > 0 {
		values["enum"] = "~none~"
	}
	if s.Pattern != "" {
		values["pattern"] = "-\n@\\"
	}
	if s.Minimum != nil {
		values["minimum"] = int64(*s.Minimum) - 1
	}
	if s.Maximum != nil {
		values["maximum"] = int64(*s.Maximum) + 1
	}
	if s.MinItems != nil {
		values["minItems"] = make([]any, *s.MinItems-1)
	}
	if s.MaxItems != nil {
		items := make([]any, *s.MaxItems+1)
		for i := range items {
			items[i] = map[string]any{}
		}
		values["maxItems"] = items
	}
	if s.MinLength != nil {
		values["minLength"] = strings.Repeat("x", int(*s.MinLength)-1)
	}
	if s.MaxLength != nil {
		values["maxLength"] = strings.Repeat("x", int(*s.MaxLength)+1)
	}
	if s.MaxProperties != nil {
		members := map[string]any{}
		for i := range *s.MaxProperties + 1 {
			members[fmt.Sprint(i)] = map[string]any{}
		}
		values["maxProperties"] = members
	}
	return values
}

const reference = `{valueFrom: {secretKeyRef: {name: s, key: k}}}`

// ruleCases are specs that violate one rule, by kind, with the field that the server names.
func ruleCases() map[string][][2]string {
	join := func(text string) string { return "{domain: ad.example.com, " + text + "}" }
	withKey := "key: {id: 1, type: MD5, value: " + reference + "}"
	return map[string][][2]string{
		contract.KindContainerRuntime: {
			{`{rootDir: /a, stateDir: /a}`, "spec.stateDir"},
			{`{registries: {a: {auth: {}}}}`, "spec.registries[a].auth"},
			{`{registries: {a: {auth: {username: u, identityToken: ` + reference + `}}}}`, "spec.registries[a].auth"},
			{`{registries: {a: {auth: {username: u}}}}`, "spec.registries[a].auth"},
			{`{proxy: {http: x, httpSecret: ` + reference + `}}`, "spec.proxy.httpSecret"},
			{`{proxy: {https: x, httpsSecret: ` + reference + `}}`, "spec.proxy.httpsSecret"},
		},
		contract.KindTimesync: {
			{`{servers: [{address: a, nts: true, ` + withKey + `}]}`, "spec.servers[0].key"},
			{`{pools: [{address: a, nts: true, ` + withKey + `}]}`, "spec.pools[0].key"},
			{`{servers: [{address: a, minPoll: 5, maxPoll: 4}]}`, "spec.servers[0].maxPoll"},
			{`{pools: [{address: a, minPoll: 5, maxPoll: 4}]}`, "spec.pools[0].maxPoll"},
			{`{makeStep: {threshold: 1s, limit: -2}}`, "spec.makeStep.limit"},
		},
		contract.KindDomainJoin: {
			{join(`oneTimePassword: ` + reference + `, credentials: {username: u, password: ` + reference + `}`), "spec.oneTimePassword"},
			{join(`offlineJoinBlob: ` + reference + `, credentials: {username: u, password: ` + reference + `}`), "spec.offlineJoinBlob"},
			{join(`offlineJoinBlob: ` + reference + `, oneTimePassword: ` + reference), "spec.offlineJoinBlob"},
			{join(`leave: delete`), "spec.leave"},
			{join(`leave: delete, state: present`), "spec.leave"},
			{join(`state: absent, oneTimePassword: ` + reference), "spec.oneTimePassword"},
			{join(`state: absent, offlineJoinBlob: ` + reference), "spec.offlineJoinBlob"},
			{join(`transport: sealed, ca: x`), "spec.ca"},
		},
		contract.KindKubernetesNode: {
			{`{ignorePreflightErrors: [Swap], ignoreAllPreflightErrors: true}`, "spec.ignorePreflightErrors"},
			{`{role: worker, kubeProxy: {mode: ipvs}}`, "spec.kubeProxy"},
			{`{role: controlPlaneJoin, etcd: {local: {}}}`, "spec.etcd"},
			{`{role: worker, etcd: {external: {endpoints: [a]}}}`, "spec.etcd"},
			{`{role: worker, certificateKey: ` + reference + `}`, "spec.certificateKey"},
			{`{role: worker, certificates: {}}`, "spec.certificates"},
			{`{role: worker, staticPods: [{name: a, manifest: x}]}`, "spec.staticPods"},
			{`{role: worker, discovery: {token: ` + reference + `}}`, "spec.discovery"},
			{`{node: {name: a, nameFrom: {hostname: fqdn}}}`, "spec.node.nameFrom"},
			{`{node: {ip: 10.0.0.1, ipFrom: {interface: eth0}}}`, "spec.node.ipFrom"},
			{`{node: {advertiseAddress: 10.0.0.1, advertiseAddressFrom: {interface: eth0}}}`, "spec.node.advertiseAddressFrom"},
			{`{node: {providerID: a, providerIDFrom: {file: /a}}}`, "spec.node.providerIDFrom"},
			{`{node: {nameFrom: {}}}`, "spec.node.nameFrom"},
			{`{node: {nameFrom: {hostname: fqdn, file: /a}}}`, "spec.node.nameFrom"},
			{`{node: {nameFrom: {hostname: fqdn, family: ipv4}}}`, "spec.node.nameFrom.family"},
			{`{node: {nameFrom: {hostname: fqdn, key: a}}}`, "spec.node.nameFrom.key"},
			{`{node: {nameFrom: {interface: a, prefix: b}}}`, "spec.node.nameFrom.prefix"},
			{`{node: {ipFrom: {}}}`, "spec.node.ipFrom"},
			{`{node: {ipFrom: {hostname: fqdn, family: ipv4}}}`, "spec.node.ipFrom.family"},
			{`{node: {ipFrom: {hostname: fqdn, key: a}}}`, "spec.node.ipFrom.key"},
			{`{node: {ipFrom: {interface: a, prefix: b}}}`, "spec.node.ipFrom.prefix"},
			{`{node: {advertiseAddressFrom: {}}}`, "spec.node.advertiseAddressFrom"},
			{`{node: {advertiseAddressFrom: {hostname: fqdn, family: ipv4}}}`, "spec.node.advertiseAddressFrom.family"},
			{`{node: {advertiseAddressFrom: {hostname: fqdn, key: a}}}`, "spec.node.advertiseAddressFrom.key"},
			{`{node: {advertiseAddressFrom: {interface: a, prefix: b}}}`, "spec.node.advertiseAddressFrom.prefix"},
			{`{node: {advertiseAddressFrom: {hostname: fqdn, jsonKeys: [a]}}}`, "spec.node.advertiseAddressFrom.jsonKeys"},
			{`{node: {advertiseAddressFrom: {file: /a, key: a, jsonKeys: [a]}}}`, "spec.node.advertiseAddressFrom.jsonKeys"},
			{`{node: {providerIDFrom: {}}}`, "spec.node.providerIDFrom"},
			{`{node: {providerIDFrom: {hostname: fqdn, family: ipv4}}}`, "spec.node.providerIDFrom.family"},
			{`{node: {providerIDFrom: {hostname: fqdn, key: a}}}`, "spec.node.providerIDFrom.key"},
			{`{node: {providerIDFrom: {hostname: fqdn, jsonKeys: [a]}}}`, "spec.node.providerIDFrom.jsonKeys"},
			{`{node: {providerIDFrom: {file: /a, key: a, jsonKeys: [a]}}}`, "spec.node.providerIDFrom.jsonKeys"},
			{`{node: {nameFrom: {hostname: fqdn, jsonKeys: [a]}}}`, "spec.node.nameFrom.jsonKeys"},
			{`{node: {nameFrom: {file: /a, key: a, jsonKeys: [a]}}}`, "spec.node.nameFrom.jsonKeys"},
			{`{node: {ipFrom: {hostname: fqdn, jsonKeys: [a]}}}`, "spec.node.ipFrom.jsonKeys"},
			{`{node: {ipFrom: {file: /a, key: a, jsonKeys: [a]}}}`, "spec.node.ipFrom.jsonKeys"},
			{`{node: {providerIDFrom: {interface: a, prefix: b}}}`, "spec.node.providerIDFrom.prefix"},
			{`{kubeProxy: {skip: true, mode: ipvs}}`, "spec.kubeProxy.skip"},
			{`{kubeProxy: {skip: true, config: {a: 1}}}`, "spec.kubeProxy.skip"},
			{`{discovery: {kubeconfig: ` + reference + `, endpoint: "a:1"}}`, "spec.discovery.kubeconfig"},
			{`{etcd: {}}`, "spec.etcd"},
			{`{etcd: {external: {endpoints: [a], cert: x}}}`, "spec.etcd.external.key"},
			{`{files: [{path: /a}]}`, "spec.files[0]"},
			{`{files: [{path: /a, content: "", secretContent: ` + reference + `}]}`, "spec.files[0]"},
			{`{files: [{path: /a, secretContent: ` + reference + `, mode: "0646"}]}`, "spec.files[0].mode"},
		},
	}
}

// casesOf are the cases of a kind.
func casesOf(kind string) [][2]string {
	all := ruleCases()[kind]
	if kind == contract.KindKubernetesNode {
		all = append(all, configCases("kubelet", contract.Kubelet{}.Elsewhere())...)
		all = append(all, configCases("kubeProxy", contract.KubeProxy{}.Elsewhere())...)
	}
	return all
}

// configCases are specs with a field of a configuration of Kubernetes that another field of the document sets.
func configCases(part string, elsewhere map[string]string) (all [][2]string) {
	values := map[string]string{
		"maxPods": "1", "protectKernelDefaults": "true", "serverTLSBootstrap": "true", "registerNode": "true", "registerWithTaints": "[{key: a}]",
		"evictionHard": "{a: b}", "kubeReserved": "{a: b}", "systemReserved": "{a: b}",
	}
	for name := range elsewhere {
		all = append(all, [2]string{"{" + part + ": {config: {" + name + ": " + cmp.Or(values[name], "a") + ", other: {a: b}}}}", "spec." + part + ".config." + name})
	}
	return all
}

// testRules: each rule of each field has a case, which the server refuses at its field, as an object and in a template.
func testRules(t *testing.T, c client.Client) {
	count := 0
	for _, kind := range contract.MachineKinds() {
		missing := map[[2]string]bool{} // the fields and messages of rules, without a case so far
		visit("spec", schemaOf(definitions(t)[kind]).Properties["spec"], func(at string, s apiextensionsv1.JSONSchemaProps, _ bool) {
			for _, r := range s.XValidations {
				missing[[2]string{at + r.FieldPath, r.Message}] = true
				count++
			}
		})
		for _, rc := range casesOf(kind) {
			spec := map[string]any{}
			fromYAML(t, []byte(rc[0]), &spec)
			got := refusal(t, c, object(kind, "rule", spec))
			assert.Equal(t, []string{rc[1]}, slices.Collect(maps.Keys(got)), "%s: %v", rc[0], got)
			maps.DeleteFunc(missing, func(rule [2]string, _ bool) bool {
				return rule[0] == strings.ReplaceAll(rc[1], "[a]", "[k]") && strings.Contains(got[rc[1]], rule[1])
			})
			got = refusal(t, c, object(kind+"Template", "rule", spec))
			assert.Contains(t, got, strings.Replace(rc[1], "spec", "spec.template.spec", 1), rc[0])
		}
		assert.Empty(t, missing, "rules of %s that no case violates", kind)
	}
	t.Logf("%d rules", count)
}

// testEdges: values at the limits of bounds and rules are taken, as a plugin takes them. An empty value is an absent one.
func testEdges(t *testing.T, c client.Client) {
	for kind, specs := range map[string][]string{
		contract.KindContainerRuntime: {
			`{rootDir: "", stateDir: "", cgroupDriver: "", logLevel: "", oomScore: -1000, registries: {}, runtimes: {}}`,
			`{rootDir: 'C:\ProgramData\containerd\root', imports: ['/etc/a/*.toml', 'D:\b.toml']}`,
			`{registries: {a: {dialTimeout: "", auth: {username: "", identityToken: ` + reference + `}}}}`,
			`{proxy: {http: "", httpSecret: ` + reference + `, https: "http://a:1"}}`,
		},
		contract.KindTimesync: {
			`{profile: "", servers: [{address: a, minPoll: -6, maxPoll: -6, nts: false, key: {id: 65535, type: AES128, value: ` + reference + `}}]}`,
			`{makeStep: {threshold: 1.5s, limit: -1}, waitForSync: {timeout: 1h30m, maxOffset: .5s}}`,
			`{refClocks: [{driver: phc, device: /dev/ptp0, offset: -500us}, {driver: pps, device: /dev/pps0, offset: "0"}]}`,
		},
		contract.KindSysctl: {`{}`, `{parameters: {a: "", b: 0, c: -1, d: "18446744073709551615"}, modules: [br_netfilter]}`},
		contract.KindDomainJoin: {
			`{domain: AD.example.com, state: absent, leave: disable, credentials: {username: u, password: ` + reference + `}}`,
			`{domain: a.b, keytab: {mode: "640", owner: "root:sssd"}, transport: ldaps, ca: x, computerName: N-1}`,
			`{domain: a.b, keytab: {mode: "", owner: "", path: ""}, leave: "", transport: "", fqdn: "", computerName: ""}`,
		},
		contract.KindKubernetesNode: {
			`{}`, `{role: "", kubernetesVersion: v1.30.14-eks-1, kubeProxy: {skip: false, mode: ""}}`,
			`{discovery: {token: ` + reference + `}}`, `{role: controlPlaneInit, discovery: {token: ` + reference + `, caCertHashes: []}}`,
			`{files: [{path: /a, secretContent: ` + reference + `, mode: "0644"}, {path: 'C:\a', content: "", mode: "644", when: "", encoding: ""}]}`,
			`{node: {name: "", nameFrom: {hostname: "", file: /a, key: k, prefix: p}, taints: []}, ignorePreflightErrors: [], ignoreAllPreflightErrors: true}`,
			`{apiServer: {volumes: [{name: a, hostPath: /a, mountPath: "", pathType: ""}], args: [{name: v, value: ""}]}, timeouts: {discovery: ""}}`,
		},
	} {
		for _, text := range specs {
			spec := map[string]any{}
			fromYAML(t, []byte(text), &spec)
			assert.NoError(t, c.Create(t.Context(), object(kind, "edge", spec), client.DryRunAll), text)
		}
	}
}

// testSecrets: a value in place of a reference is refused without being quoted.
func testSecrets(t *testing.T, c client.Client) {
	const canary = "c4n4ry"
	for _, value := range []any{
		canary,
		map[string]any{"value": canary},
		map[string]any{},
		map[string]any{"valueFrom": map[string]any{}},
		map[string]any{"valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "s"}}},
		map[string]any{"valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "../../other/secrets/s", "key": "k"}}},
		map[string]any{"valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "s", "key": "k\n"}}},
		map[string]any{"valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "s", "key": "k"}}, "value": canary},
	} {
		err := c.Create(t.Context(), object(contract.KindDomainJoin, "secret", map[string]any{"domain": "ad.example.com", "oneTimePassword": value}),
			client.DryRunAll)
		require.Error(t, err, "%v", value)
		assert.Contains(t, err.Error(), "spec.oneTimePassword")
		assert.NotContains(t, err.Error(), canary)
	}
}
