package sdk_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

func TestDescribeKinds(t *testing.T) {
	t.Parallel()
	p := plugin(nil)
	p.Distributions = []string{"ubuntu", "debian"}
	p.Kinds = []sdk.Kind{sdk.For[probe](apiVersion, kind, sdk.PhaseProvisioning, nil).JSONSchema([]byte("{}"))}
	for _, requested := range []bool{false, true} {
		d, err := sdk.NewConfigurator(p, machinetest.Target().OS).Describe(t.Context(),
			pluginv1.DescribeRequest{Target: machinetest.Target(), JSONSchema: requested})
		require.NoError(t, err)
		want := pluginv1.Kind{
			APIVersion: apiVersion, Kind: kind, Phase: sdk.PhaseProvisioning, SecretFields: []string{"spec.password"},
		}
		if requested {
			want.JSONSchema = []byte("{}")
		}
		assert.Equal(t, []pluginv1.Kind{want}, d.Kinds)
		assert.Equal(t, p.Distributions, d.Distributions)
	}
}

// TestValidate: validation runs on what decodes; an error that follows from one of decoding is left out.
func TestValidate(t *testing.T) {
	t.Parallel()
	planned := false
	m := sdk.NewConfigurator(sdk.Plugin{
		Name: "tester", OS: []string{machinetest.Target().OS},
		Kinds: []sdk.Kind{sdk.For(apiVersion, kind, sdk.PhasePreparation,
			func(context.Context, sdk.Machine, probe) (sdk.Plan, error) { planned = true; return sdk.Plan{}, nil },
		).Validate(func(want probe) (wrong []sdk.Violation) {
			if want.Spec.Count < 1 {
				wrong = append(wrong, sdk.Violation{Field: "spec.count", Message: "must be above 0"})
			}
			if len(want.Spec.Hosts) == 0 {
				wrong = append(wrong, sdk.Violation{Field: "spec.hosts", Message: "is required"})
			}
			return wrong
		})},
	}, machinetest.Target().OS)
	for name, c := range map[string]struct {
		spec string
		want []string
	}{
		"right":                 {`{"count":1,"hosts":["a"]}`, nil},
		"wrong":                 {`{}`, []string{"spec.count: must be above 0", "spec.hosts: is required"}},
		"with an unknown field": {`{"hosts":["a"],"colour":1}`, []string{"spec.colour: unknown field", "spec.count: must be above 0"}},
		"follows from an error": {`{"count":"a"}`, []string{"spec.count: must be an integer", "spec.hosts: is required"}},
	} {
		t.Run(name, func(t *testing.T) {
			planned = false
			_, err := m.Plan(t.Context(), live(document(c.spec)))
			assert.Equal(t, c.want == nil, planned)
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			wantCode(t, err, pluginv1.CodeInvalidConfig, "")
			var got []string
			for _, v := range pluginv1.AsError(err).Violations {
				got = append(got, v.Field+": "+v.Message)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestProviderConfig(t *testing.T) {
	t.Parallel()
	type config struct {
		Level string         `json:"level,omitempty"`
		Limit map[string]int `json:"limit,omitempty"`
	}
	for name, c := range map[string]struct {
		raw  string
		want config
		at   []string
	}{
		"none":       {"", config{}, nil},
		"empty":      {"{}", config{}, nil},
		"right":      {`{"level":"info"}`, config{Level: "info"}, nil},
		"unknown":    {`{"level":"info","colour":1}`, config{Level: "info"}, []string{"spec.providerConfig.colour"}},
		"odd key":    {`{"a b":1}`, config{}, []string{`spec.providerConfig["a b"]`}},
		"deep":       {`{"limit":{"x":"canary"}}`, config{}, []string{`spec.providerConfig.limit.x`}},
		"no mapping": {`[]`, config{}, []string{"spec.providerConfig"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, violations := sdk.ProviderConfig[config](json.RawMessage(c.raw))
			var at []string
			for _, v := range violations {
				at = append(at, v.Field)
				assert.NotContains(t, v.Message+v.Hint, "canary")
			}
			assert.Equal(t, c.at, at)
			if c.at == nil || c.want.Level != "" {
				assert.Equal(t, c.want, got)
			}
		})
	}
}

// TestRulesOfTheContract: the rules of the contract hold without a word of the plugin, and beside what it refuses itself.
func TestRulesOfTheContract(t *testing.T) {
	t.Parallel()
	doc := []byte(`{"apiVersion":"` + v1alpha1.APIVersion + `","kind":"Sysctl","metadata":{"name":"a"},"spec":{"profiles":["kubernets","kubernetes"]}}`)
	want := sdk.Violation{Field: "spec.profiles[0]", Message: "is not a value of this field", Hint: "did you mean kubernetes?"}
	own := sdk.Violation{Field: "spec.modules", Message: "is missing"}
	worse := sdk.Violation{Field: "spec.profiles[0]", Message: "unknown profile"}
	plan := func(err error) sdk.PlanFunc[v1alpha1.Sysctl] {
		return func(context.Context, sdk.Machine, v1alpha1.Sysctl) (sdk.Plan, error) { return sdk.Plan{}, err }
	}
	kind := func(plan sdk.PlanFunc[v1alpha1.Sysctl]) sdk.KindOf[v1alpha1.Sysctl] {
		return sdk.For(v1alpha1.APIVersion, v1alpha1.KindSysctl, sdk.PhasePreparation, plan)
	}
	for name, c := range map[string]struct {
		kind sdk.Kind
		want []sdk.Violation
	}{
		"a plugin without checks":     {kind(plan(nil)), []sdk.Violation{want}},
		"a machine that is not ready": {kind(plan(sdk.Precondition("a", "b"))), []sdk.Violation{want}},
		"errors of the plan function": {kind(plan(sdk.InvalidConfig(worse, own))), []sdk.Violation{want, own}},
		"errors that need no machine": {kind(nil).Validate(func(v1alpha1.Sysctl) []sdk.Violation { return []sdk.Violation{own, worse} }), []sdk.Violation{want, own}},
	} {
		p := plugin(nil)
		p.Kinds = []sdk.Kind{c.kind}
		_, err := sdk.NewConfigurator(p, machinetest.Target().OS).Plan(t.Context(), pluginv1.Request{Document: doc, Root: t.TempDir(), Target: machinetest.Target()})
		e := pluginv1.AsError(err)
		require.NotNil(t, e, name)
		assert.Equal(t, pluginv1.CodeInvalidConfig, e.Code, name)
		assert.Equal(t, c.want, e.Violations, name)
	}
}
