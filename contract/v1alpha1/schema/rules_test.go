package schema

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

func TestRulesOfEveryKind(t *testing.T) {
	t.Parallel()
	for _, kind := range v1alpha1.Kinds() {
		assert.NotNil(t, RulesFor(v1alpha1.APIVersion, kind), kind)
	}
	none := RulesFor("example.com/v1", v1alpha1.KindSysctl)
	assert.Nil(t, none)
	assert.Empty(t, none.Violations([]byte(`{"spec":{"profiles":["x"]}}`)))
}

func TestViolations(t *testing.T) {
	t.Parallel()
	var rules Rules
	require.NoError(t, json.Unmarshal([]byte(`{"additionalProperties":false,"properties":{
		"color":{"enum":["red","green",""]},
		"from":{"description":"The first day. Not the last.","minimum":-1},
		"to":{"description":"The last day.","maximum":5},
		"both":{"minimum":1,"maximum":5},
		"free":{},
		"list":{"description":"Colors of the sky.","minItems":1,"items":{"enum":["blue"]}},
		"names":{"additionalProperties":{"properties":{"n":{"minimum":1}}}}}}`), &rules))
	for spec, want := range map[string][]document.Violation{
		`{}`: nil,
		`{"color":"","from":-1,"to":5,"both":3,"free":{"a":1},"list":["blue"],"names":{}}`: nil,
		`{"color":null,"from":"a","to":[1],"list":{"a":1},"names":7,"unknown":0}`:          nil,
		`{"color":"canary"}`:        {{Field: "spec.color", Message: "is not a value of this field", Hint: "use one of red, green"}},
		`{"color":"Red"}`:           {{Field: "spec.color", Message: "is not a value of this field", Hint: "did you mean red?"}},
		`{"from":-2}`:               {{Field: "spec.from", Message: "must be at least -1", Hint: "The first day"}},
		`{"to":6,"both":0}`:         {{Field: "spec.both", Message: "must be from 1 to 5"}, {Field: "spec.to", Message: "must be at most 5", Hint: "The last day"}},
		`{"list":[]}`:               {{Field: "spec.list", Message: "must have at least 1 item(s)", Hint: "Colors of the sky"}},
		`{"list":["blue","blau"]}`:  {{Field: "spec.list[1]", Message: "is not a value of this field", Hint: "use one of blue"}},
		`{"names":{"a.b":{"n":0}}}`: {{Field: `spec.names["a.b"].n`, Message: "must be at least 1"}},
	} {
		assert.Equal(t, want, rules.Violations([]byte(`{"spec":`+spec+`}`)), spec)
	}
	assert.Empty(t, rules.Violations([]byte(`{`)))
}

func BenchmarkRead(b *testing.B) {
	for b.Loop() {
		RulesIn(For(v1alpha1.APIVersion, v1alpha1.KindKubernetesNode))
	}
}
