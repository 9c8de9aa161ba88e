package reference

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMarkers: a marker is no text of a description, and its rule is in the schemas of the document and of the resource.
func TestMarkers(t *testing.T) {
	t.Parallel()
	s, err := Read("testdata/kinds")
	require.NoError(t, err)
	socket := s.object("kinds.Socket", nil)
	require.NoError(t, s.err)
	out, err := json.Marshal(socket)
	require.NoError(t, err)
	assert.JSONEq(t, `{"type":"object","additionalProperties":false,"required":["place"],"properties":{
		"place":{"type":"string","pattern":"^(?:[a-z]+)$","description":"Where it is."},
		"watts":{"type":"integer","minimum":1,"maximum":60,"description":"Its power."},
		"base":{"type":"string","enum":["E14","E 27",""],"description":"Holds the bulb."},
		"tags":{"type":"array","minItems":1,"description":"Its names.","items":{"type":"string","pattern":"^(?:[a-z]+)$"}}}}`, string(out))
	got := resource(socket)
	assert.Equal(t, int64(3), *got.Properties["tags"].MaxItems, "which no document is bound by")
	assert.Equal(t, "Place is where it is.", got.Properties["place"].Description)
	require.Len(t, got.XValidations, 1)
	rule := got.XValidations[0]
	assert.Equal(t, [3]string{`self.place != "a"`, "place is taken", ".place"}, [3]string{rule.Rule, rule.Message, rule.FieldPath})
}

// TestMarkersThatAreNotUnderstood: no rule is lost in silence.
func TestMarkersThatAreNotUnderstood(t *testing.T) {
	t.Parallel()
	for _, marker := range []string{
		"default=1", "validation:Enumm=a", "validation:Minimum=a", "validation:Pattern=`a`", "validation:items:Enum=a", `validation:XValidation:rule="a`,
		`validation:XValidation:reason="a"`,
	} {
		s := &Source{}
		s.mark(&jsonSchema{}, []string{marker})
		assert.ErrorContains(t, s.err, "the marker +kubebuilder:"+marker)
	}
}
