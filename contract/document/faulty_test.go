package document

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A document with faults whose kind can be read keeps what its plugin can check.
func TestFaultyDocuments(t *testing.T) {
	t.Parallel()
	const spec = "kind: A\napiVersion: v1\nspec: {provider: x, a: 1}\n"
	for text, want := range map[string]string{
		spec + "metadata: {name: a, nme: b}":                      `{"provider":"x","a":1}`,
		spec + "metadata: {}":                                     `{"provider":"x","a":1}`,
		spec + "metadata: {name: a, when: {os: [linx]}}":          `{"provider":"x","a":1}`,
		"{kind: A, apiVersion: v1, spec: {provider: 7, a: 1.50}}": `{"a":1.50}`,
		"{kind: A, apiVersion: v1, spec: {a: *x, b: 1, b: 2}}":    `{"a":null,"b":1}`,
		"{kind: a, apiVersion: v1, spec: {}}":                     "",
		"{kind: A, spec: {}}":                                     "",
		"{kind: A, apiVersion: v1, spec: []}":                     "",
		"{kind: A, apiVersion: v1}":                               "",
	} {
		s, err := Decode("f", strings.NewReader(text))
		require.NoError(t, err)
		assert.NotEmpty(t, s.Errors, text)
		assert.Empty(t, s.Documents, text)
		if want == "" {
			assert.Empty(t, s.Faulty, text)
			continue
		}
		if assert.Len(t, s.Faulty, 1, text) {
			got, err := s.Faulty[0].JSON()
			require.NoError(t, err)
			assert.JSONEq(t, `{"apiVersion":"v1","kind":"A","metadata":{"name":"faulty"},"spec":`+want+`}`, string(got), text)
		}
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]bool{
		{"spec.a", "spec.a"}: true, {"spec.a.b", "spec.a"}: true, {"spec.a[0]", "spec.a"}: true, {"spec.a", ""}: true, {"", ""}: true,
		{"spec.ab", "spec.a"}: false, {"spec", "spec.a"}: false, {"spec.a[10]", "spec.a[1]"}: false,
	} {
		assert.Equal(t, want, Within(pair[0], pair[1]), pair)
	}
}
