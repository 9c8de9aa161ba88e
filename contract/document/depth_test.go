package document

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFieldsAtAnotherDepth: the hint for a field that is indented wrongly names its place.
func TestFieldsAtAnotherDepth(t *testing.T) {
	t.Parallel()
	type settings struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Role    string `json:"role"`
			Cluster *struct {
				Endpoint string `json:"endpoint"`
			} `json:"cluster"`
			Files []struct {
				Mode string `json:"mode"`
			} `json:"files"`
		} `json:"spec"`
	}
	for text, want := range map[string]string{
		`{"spec": {"cluster": null, "endpoint": "x"}}`: "did you mean spec.cluster.endpoint? Check the indentation",
		`{"spec": {"cluster": {"role": "x"}}}`:         "did you mean spec.role? Check the indentation",
		`{"spec": {"cluster": {"name": "x"}}}`:         "did you mean metadata.name? Check the indentation",
		`{"spec": {"files": [{"endpoint": "x"}]}}`:     "did you mean spec.cluster.endpoint? Check the indentation",
		`{"endpoint": "x"}`:                            "remove it, or use one of: metadata, spec",
		`{"spec": {"rol": "x"}}`:                       "did you mean role?",
		`{"spec": {"files": [{"mode": 420}]}}`:         `write the permission bits in octal and in quotes, such as "0644", which is 420 in decimal`,
	} {
		found := Unmarshal([]byte(text), &settings{})
		require.Len(t, found, 1, text)
		assert.Equal(t, want, found[0].Hint, text)
	}
}
