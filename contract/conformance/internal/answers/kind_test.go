package answers

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// TestSharedCases: the cases of the contract state what every provider has in common, and nothing that is up to one.
func TestSharedCases(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{
		v1alpha1.KindContainerRuntime, v1alpha1.KindDomainJoin, v1alpha1.KindKubernetesNode, v1alpha1.KindSysctl, v1alpha1.KindTimesync,
	} {
		shared, err := sharedCases(testcase.Header{APIVersion: v1alpha1.APIVersion, Kind: kind})
		require.NoError(t, err)
		assert.NotEmpty(t, shared, kind)
		for _, c := range shared {
			assert.Equal(t, testcase.Header{APIVersion: v1alpha1.APIVersion, Kind: kind}, c.Header, c.Dir)
			assert.NotContains(t, string(c.Config), "provider", "%s: which options a provider has is up to it", c.Dir)
			assert.Equal(t, testcase.Expectation{Errors: c.Expect.Errors, Claims: c.Expect.Claims, Secrets: c.Expect.Secrets}, c.Expect, c.Dir)
			for _, e := range c.Expect.Errors {
				assert.Equal(t, testcase.ExpectedError{Code: pluginv1.CodeInvalidConfig.String(), Field: e.Field}, e, c.Dir)
				assert.NotEmpty(t, e.Field, c.Dir)
			}
		}
	}
	for _, other := range []testcase.Header{
		{APIVersion: "example.com/v1", Kind: v1alpha1.KindSysctl},
		{APIVersion: v1alpha1.APIVersion, Kind: "Firewall"},
		{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindRemoteConfig},
	} {
		shared, err := sharedCases(other)
		require.NoError(t, err)
		assert.Empty(t, shared)
	}
}

// TestDeviation: what a machine or a provider cannot do is no deviation, and a valid document is never InvalidConfig.
func TestDeviation(t *testing.T) {
	t.Parallel()
	key := NewClaimKey()
	refused := &testcase.Case{Expect: testcase.Expectation{Errors: []testcase.ExpectedError{{Code: "InvalidConfig", Field: "spec.a"}}}}
	valid := &testcase.Case{Expect: testcase.Expectation{Claims: map[string][]string{"a:b": {"1"}}}}
	fault := func(code pluginv1.Code, fields ...string) error {
		e := &pluginv1.Error{Code: code}
		for _, field := range fields {
			e.Violations = append(e.Violations, document.Violation{Field: field})
		}
		return e
	}
	plan := func(id, value string) pluginv1.Plan {
		return pluginv1.Plan{Claims: []pluginv1.Claim{pluginv1.NewClaim(key, id, "", []byte(value))}}
	}
	for name, tt := range map[string]struct {
		of     *testcase.Case
		plan   pluginv1.Plan
		answer error
		says   string
	}{
		"refused":                  {of: refused, answer: fault(pluginv1.CodeInvalidConfig, "spec.a")},
		"another system":           {of: refused, answer: fault(pluginv1.CodeUnsupported)},
		"accepted":                 {of: refused, says: "Plan succeeds instead"},
		"another field":            {of: refused, answer: fault(pluginv1.CodeInvalidConfig, "spec.b"), says: "InvalidConfig spec.b"},
		"more fields":              {of: refused, answer: fault(pluginv1.CodeInvalidConfig, "spec.a", "spec.b"), says: "InvalidConfig spec.b"},
		"unsupported, not invalid": {of: refused, answer: fault(pluginv1.CodeUnsupported, "spec.a"), says: "Unsupported spec.a"},
		"claimed":                  {of: valid, plan: plan("a:b", "1")},
		"not supported":            {of: valid, answer: fault(pluginv1.CodeUnsupported, "spec.a")},
		"not ready":                {of: valid, answer: fault(pluginv1.CodePrecondition)},
		"another id":               {of: valid, plan: plan("a:c", "1"), says: `"a:b" is not claimed`},
		"another value":            {of: valid, plan: plan("a:b", "2"), says: "another value"},
		"refused, though valid":    {of: valid, answer: fault(pluginv1.CodeInvalidConfig, "spec.a"), says: "the document is valid"},
		"no answer":                {of: valid, answer: assert.AnError, says: "the document is valid"},
	} {
		got := deviation(tt.of, tt.plan, tt.answer, key)
		assert.Equal(t, tt.says == "", got == "", "%s: %s", name, got)
		assert.Contains(t, got, tt.says, name)
	}
}
