package explain

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestForeignSchemas: JSON Schema allows more than explain shows; what it does not show is no error.
func TestForeignSchemas(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`:                    "\nDESCRIPTION:\n",
		`{"type":["a","null"]}`: "\nDESCRIPTION:\n",
		`{"properties":{"b":{"$ref":"x"},"a":{"type":"string","enum":["x",1]}}}`: "\nFIELDS:\n  b <anything>\n\n  a <string>\n",
		`{"properties":{"a":true}}`: "",
		`{"properties":{"spec":{"additionalProperties":{"type":"string"}}}}`:         "\nDESCRIPTION:\n",
		`{"description":"x\u001b[2J\u202e","properties":{"\u001b]":{"type":["x"]}}}`: `\x1b`,
	} {
		root, err := readSchema("A", []byte(text))
		if want == "" {
			assert.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		field, err := root.find("")
		require.NoError(t, err, text)
		var out strings.Builder
		require.NoError(t, field.write(&out, "A", "v1", "", false))
		assert.Contains(t, out.String(), want, text)
		assert.NotContains(t, out.String(), "\x1b", text)
	}
}

func FuzzReadSchema(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"items":{"type":"string"}}}}`), "a.b")
	f.Fuzz(func(t *testing.T, text []byte, path string) {
		root, err := readSchema("A", text)
		if err != nil {
			return
		}
		if field, err := root.find(path); err == nil {
			require.NoError(t, field.write(&bytes.Buffer{}, "A", "", path, true))
		}
	})
}
