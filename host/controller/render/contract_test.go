package render_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/render"
)

const canary = "c4n4ry"

var errMissing = errors.New("the Secret does not exist")

// lookup has the Secret s with the keys text and bytes.
func lookup(name, key string) ([]byte, error) {
	switch {
	case name == "s" && key == "text":
		return []byte(canary), nil
	case name == "s" && key == "bytes":
		return []byte(canary + "\xff"), nil
	}
	return nil, errMissing
}

const (
	foreignVersion = "example.com/v1"
	reference      = `{"valueFrom":{"secretKeyRef":{"name":"s","key":"text"}}}`
)

func TestContractOfADomainJoin(t *testing.T) {
	t.Parallel()
	got, err := render.Contract(contract.APIVersion, contract.KindDomainJoin, []byte(`{"domain":"ad.example.com",
		"credentials":{"username":"u","password":`+reference+`},
		"providerConfig":{"deep":[{"token":`+reference+`,"number":12345678901234567890,"null":null}]}}`), lookup)
	require.NoError(t, err)
	spec, ok := got.(*contract.DomainJoinSpec)
	require.True(t, ok)
	assert.Equal(t, "ad.example.com", spec.Domain)
	assert.Equal(t, canary, string(spec.Credentials.Password.Reveal()))
	assert.JSONEq(t, `{"deep":[{"token":{"value":"c4n4ry"},"number":12345678901234567890,"null":null}]}`, string(spec.ProviderConfig))
}

// TestContractOfNumbers: a custom resource has large numbers as strings.
func TestContractOfNumbers(t *testing.T) {
	t.Parallel()
	got, err := render.Contract(contract.APIVersion, contract.KindContainerRuntime, []byte(`{"runtimes":{"runc":{"options":{"a":null,"b":1},
		"baseSpec":{"rlimits":{"RLIMIT_NOFILE":{"soft":0,"hard":"18446744073709551615"}}}}}}`), lookup)
	require.NoError(t, err)
	spec, ok := got.(*contract.ContainerRuntimeSpec)
	require.True(t, ok)
	assert.Equal(t, contract.Rlimit{Soft: 0, Hard: 1<<64 - 1}, spec.Runtimes["runc"].BaseSpec.Rlimits["RLIMIT_NOFILE"])
	assert.Equal(t, map[string]json.RawMessage{"a": json.RawMessage("null"), "b": json.RawMessage("1")}, spec.Runtimes["runc"].Options)
	got, err = render.Contract(contract.APIVersion, contract.KindSysctl, []byte(`{"parameters":{"a.b":-1,"c.d":"010","e.f":"1 2"}}`), lookup)
	require.NoError(t, err)
	assert.Equal(t, &contract.SysctlSpec{Parameters: map[string]contract.IntOrString{"a.b": "-1", "c.d": "010", "e.f": "1 2"}}, got)
}

// TestContractLeavesTheRequired: the controller fills in role and kubernetesVersion.
func TestContractLeavesTheRequired(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{`{"node":{"taints":[]}}`, "", "null", "{}"} {
		got, err := render.Contract(contract.APIVersion, contract.KindKubernetesNode, []byte(spec), lookup)
		require.NoError(t, err)
		node, ok := got.(*contract.KubernetesNodeSpec)
		require.True(t, ok)
		assert.Equal(t, strings.Contains(spec, "taints"), node.Node.Taints != nil, "an empty list of taints is not an absent one")
	}
}

// TestContractOfPlaces: kinds that say where documents and reports are have no custom resource, and are documents in place.
func TestContractOfPlaces(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{contract.KindReportTarget, contract.KindRemoteConfig, contract.KindEncryptedConfig} {
		got, err := render.Contract(contract.APIVersion, kind, []byte(`{"provider":"http","providerConfig":{"bearer":`+reference+`}}`), lookup)
		require.NoError(t, err)
		made, err := json.Marshal(got)
		require.NoError(t, err)
		assert.Contains(t, string(made), `"provider":"http"`)
		assert.Contains(t, string(made), `"providerConfig":{"bearer":{"value":"c4n4ry"}}`)
	}
}

func TestContractOfAForeignKind(t *testing.T) {
	t.Parallel()
	got, err := render.Contract(foreignVersion, "Motd", []byte(`{"a":[`+reference+`],"n":1.50,"x":{"valueFrom":{"fieldRef":1}}}`), lookup)
	require.NoError(t, err)
	assert.Equal(t, json.RawMessage(`{"a":[{"value":"c4n4ry"}],"n":1.50,"x":{"valueFrom":{"fieldRef":1}}}`), got)
}

func TestContractRefuses(t *testing.T) {
	t.Parallel()
	join := func(password string) string { return `{"credentials":{"password":` + password + `}}` }
	from := func(ref string) string { return `{"valueFrom":{"secretKeyRef":` + ref + `}}` }
	const password, at = "spec.credentials.password", "spec.credentials.password.valueFrom.secretKeyRef"
	for name, c := range map[string]struct {
		apiVersion, kind, spec string
		fields                 []string
	}{
		"a bare value":            {spec: join(`{"value":"c4n4ry"}`), fields: []string{password}},
		"a string":                {spec: join(`"c4n4ry"`), fields: []string{password}},
		"a value and a reference": {spec: join(`{"value":"c4n4ry","valueFrom":{"secretKeyRef":{"name":"s","key":"text"}}}`), fields: []string{password}},
		"nothing":                 {spec: join(`{}`), fields: []string{password}},
		"no source":               {spec: join(`{"valueFrom":{}}`), fields: []string{password}},
		"another source":          {spec: join(`{"valueFrom":{"configMapKeyRef":{"name":"s"}}}`), fields: []string{password}},
		"no key":                  {spec: join(from(`{"name":"s"}`)), fields: []string{at}},
		"a further field":         {spec: join(from(`{"name":"s","key":"text","optional":true}`)), fields: []string{at}},
		"no Secret":               {spec: join(from(`{"name":"c4n4ry1","key":"text"}`)), fields: []string{at}},
		"not text":                {spec: join(from(`{"name":"s","key":"bytes"}`)), fields: []string{at}},
		"unknown fields":          {spec: `{"a":"c4n4ry","transportt":"c4n4ry"}`, fields: []string{"spec.a", "spec.transportt"}},
		"all at once": {
			spec:   `{"domain":1,"oneTimePassword":"c4n4ry","offlineJoinBlob":` + from(`{"name":"x","key":"y"}`) + `}`,
			fields: []string{"spec.domain", "spec.oneTimePassword", "spec.offlineJoinBlob.valueFrom.secretKeyRef"},
		},
		"a value of no enum":   {spec: `{"credentials":{"password":` + reference + `},"transport":"c4n4ry"}`, fields: []string{"spec.transport"}},
		"a duplicate":          {spec: `{"domain":"c4n4ry","domain":"c4n4ry"}`, fields: []string{"spec.domain"}},
		"a list":               {spec: `["c4n4ry"]`, fields: []string{"spec"}},
		"not JSON":             {spec: `{"c4n4ry":`, fields: []string{""}},
		"two values":           {spec: `{}} {"c4n4ry":1`, fields: []string{""}},
		"a free value":         {spec: `{"providerConfig":{"x":` + from(`{"name":"s"}`) + `}}`, fields: []string{"spec.providerConfig.x.valueFrom.secretKeyRef"}},
		"a secret in a map":    {kind: "ContainerRuntime", spec: `{"registryHeaders":{"X.Y":"c4n4ry"}}`, fields: []string{`spec.registryHeaders["X.Y"]`}},
		"a number of a limit":  {kind: "ContainerRuntime", spec: `{"runtimes":{"a":{"baseSpec":{"rlimits":{"b":{"soft":"c4n4ry"}}}}}}`, fields: []string{"spec.runtimes.a.baseSpec.rlimits.b.soft"}},
		"an unknown version":   {apiVersion: contract.Group + "/v9", spec: "{}", fields: []string{"apiVersion"}},
		"an unknown kind":      {kind: "Sysctrl", spec: "{}", fields: []string{"kind"}},
		"a place of documents": {kind: contract.KindRemoteConfig, spec: `{"url":"c4n4ry"}`, fields: []string{"spec.url"}},
		"a foreign reference":  {apiVersion: foreignVersion, spec: `{"a":[` + from(`{"name":"x","key":"y"}`) + `]}`, fields: []string{"spec.a[0].valueFrom.secretKeyRef"}},
		"a foreign list":       {apiVersion: foreignVersion, spec: `[]`, fields: []string{"spec"}},
		"a foreign duplicate":  {apiVersion: foreignVersion, spec: `{"a":1,"a":2}`, fields: []string{"spec.a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.apiVersion == "" {
				c.apiVersion = contract.APIVersion
			}
			if c.kind == "" {
				c.kind = contract.KindDomainJoin
			}
			got, err := render.Contract(c.apiVersion, c.kind, []byte(c.spec), lookup)
			assert.Nil(t, got)
			all, ok := errors.AsType[*render.Error](err)
			require.True(t, ok, "%v", err)
			var fields []string
			for _, v := range all.Violations {
				fields = append(fields, v.Field)
				assert.NotEmpty(t, v.Message)
			}
			assert.ElementsMatch(t, c.fields, fields, "%v", err)
			assert.NotContains(t, strings.ReplaceAll(err.Error(), canary+"1", ""), canary)
		})
	}
}

// TestErrorsOfLookup: the caller distinguishes a Secret that is not there yet from an invalid spec.
func TestErrorsOfLookup(t *testing.T) {
	t.Parallel()
	_, err := render.Contract(contract.APIVersion, contract.KindDomainJoin, []byte(`{"x":1,"oneTimePassword":{"valueFrom":{"secretKeyRef":{"name":"a","key":"b"}}}}`), lookup)
	require.ErrorIs(t, err, errMissing)
	assert.Equal(t, "spec.x: unknown field (remove it, or correct its spelling); spec.oneTimePassword.valueFrom.secretKeyRef: the Secret does not exist", err.Error())
}

// TestHintsOfForms: a hint shows a secret as an object has it.
func TestHintsOfForms(t *testing.T) {
	t.Parallel()
	_, err := render.Contract(contract.APIVersion, contract.KindDomainJoin, []byte(`{"credentials":"u"}`), lookup)
	require.EqualError(t, err, "spec.credentials: must be a mapping "+
		"(write credentials: {username: ..., password: {valueFrom: {secretKeyRef: {name: NAME, key: KEY}}}})")
}

func TestReferences(t *testing.T) {
	t.Parallel()
	ref := func(name, key string) string {
		return `{"valueFrom":{"secretKeyRef":{"name":"` + name + `","key":"` + key + `"}}}`
	}
	got, err := render.References([]byte(`{"b":` + ref("b", "2") + `,"a":[` + ref("b", "1") + `,` + ref("b", "2") + `,{"c":` + ref("a", "9") + `}],
		"bad":{"valueFrom":{"secretKeyRef":{"name":"x"}}},"more":{"name":"y","valueFrom":{"secretKeyRef":{"name":"z","key":"z"}}}}`))
	require.NoError(t, err)
	assert.Equal(t, []render.Reference{{Name: "a", Key: "9"}, {Name: "b", Key: "1"}, {Name: "b", Key: "2"}}, got)
	for _, spec := range []string{"", "null", "[", `"x"`} {
		got, err := render.References([]byte(spec))
		require.NoError(t, err)
		assert.Empty(t, got)
	}
}

// TestOddNames: no name and no key reaches the caller that the client would refuse to ask for.
func TestOddNames(t *testing.T) {
	t.Parallel()
	for _, odd := range append(oddNames(), "..", "...") {
		for _, field := range []string{"name", "key"} {
			reference := map[string]any{"name": "a", "key": "b"}
			reference[field] = odd
			spec, err := json.Marshal(map[string]any{"a": []any{map[string]any{"valueFrom": map[string]any{"secretKeyRef": reference}}}})
			require.NoError(t, err)
			if field == "key" && len(validation.IsConfigMapKey(odd)) == 0 {
				continue // a key may have upper case, and begin with any character
			}
			want := []string{"spec.a[0].valueFrom.secretKeyRef." + field}
			if odd == "" {
				want = []string{"spec.a[0].valueFrom.secretKeyRef"}
			}
			_, err = render.Contract(foreignVersion, "Motd", spec, func(string, string) ([]byte, error) {
				t.Errorf("%q is looked up", odd)
				return nil, nil
			})
			all, ok := errors.AsType[*render.Error](err)
			require.True(t, ok, "%q", odd)
			var fields []string
			for _, v := range all.Violations {
				fields = append(fields, v.Field)
			}
			assert.Equal(t, want, fields, "%q", odd)
			if _, err := render.References(spec); odd != "" {
				require.EqualError(t, err, all.Error())
			} else {
				require.NoError(t, err) // Contract refuses it as a document
			}
		}
	}
}

// oddNames are names that no object has.
func oddNames() []string {
	return []string{
		"", ".", "../../other/secrets/of-others", "a/b", "/a", "a/", "%2e%2e", "a%2Fb", "A", "Abc", "a_b", "-a", "a-", ".a", "a.", "a..b",
		"a\x00b", "a\n", "\na", "a b", "ä", "a?watch=1", "a#b", "a\\b", strings.Repeat("a", 254), "a\u202eb",
	}
}

func FuzzContract(f *testing.F) {
	for _, seed := range []string{
		`{"domain":"c4n4ry","credentials":{"password":` + reference + `}}`, `{"parameters":{"a":"c4n4ry"}}`, `{"a":{"value":"c4n4ry"}}`,
		`{"runtimes":{"a":{"options":{"b":"c4n4ry"}}}}`, `"c4n4ry"`, `{"providerConfig":{"valueFrom":{"secretKeyRef":["c4n4ry"]}}}`,
	} {
		for _, kind := range append(contract.MachineKinds(), "Motd") {
			f.Add(kind, []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, kind string, spec []byte) {
		apiVersion := contract.APIVersion
		if kind == "Motd" {
			apiVersion = foreignVersion
		}
		// A name of a field may be shown, so that the canary is a value only: not before a colon.
		named := strings.Contains(strings.ReplaceAll(strings.ReplaceAll(string(spec), " ", ""), "\n", ""), canary+`":`)
		got, err := render.Contract(apiVersion, kind, spec, func(string, string) ([]byte, error) { return []byte(canary), nil })
		if (got == nil) == (err == nil) {
			t.Errorf("a value %v and an error %v", got, err)
		}
		if err != nil && !named && strings.Contains(err.Error(), canary) {
			t.Errorf("the error quotes a value: %v", err)
		}
		_, _ = render.References(spec)
	})
}
