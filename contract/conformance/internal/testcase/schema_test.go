package testcase

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/conformance/internal/casetest"
)

// TestSchemaOfACase compares case.schema.json with what LoadCases takes and refuses.
func TestSchemaOfACase(t *testing.T) {
	t.Parallel()
	schema, err := jsonschema.NewCompiler().Compile("../../case.schema.json")
	require.NoError(t, err)
	valid := func(name string, text []byte) error {
		mapping, err := yamlMapping(name, text)
		require.NoError(t, err, name)
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(mapping))
		require.NoError(t, err, name)
		return schema.Validate(value)
	}
	for _, pattern := range []string{"plugins/*/*/testdata/conformance/*/expect.yaml", "testenv/*/testdata/*/*/expect.yaml", "contract/v1alpha1/cases/*/*/expect.yaml"} {
		files, err := filepath.Glob(filepath.Join("../../../..", pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.NoError(t, valid(file, text), file)
		}
	}
	digest := strings.Repeat("0f", 32)
	require.NoError(t, valid("expect.yaml", []byte("file: a\nsha256: \""+digest+"\"\n"))) // only for some kinds: TestCasesOfSources
	for text, good := range map[string]bool{
		"changes: [a]\nreboot: AfterRun\nmodes: {etc/b: \"0600\"}\n":   true,
		"errors: [{code: Precondition, final: true}]\nfacts: {a: b}\n": true,
		"errors: []\nchanges: [a]\n":                                   true,
		"changes: []\n":                                                true,
		"claims: {\"a:b\": [c], \"a:d\": []}\n":                        true,
		"claims: {\"a:b\": c}\n":                                       false,
		"errors: [{code: Retry}]\nclaims: {\"a:b\": [c]}\n":            false,
		"change: [a]\n":                                                false,
		"errors: [{code: Internal}]\n":                                 false,
		"errors: [{code: Retry, final: true}]\n":                       false,
		"errors: [{field: spec.a}]\n":                                  false,
		"errors: [{code: Retry}]\nchanges: [a]\n":                      false,
		"facts: {a: b}\n":                                              false,
		"reboot: Now\n":                                                false,
		"modes: {a: \"999\"}\n":                                        false,
		"modes: {a: \"1777\"}\n":                                       true,
		"modes: {a: \"10777\"}\n":                                      false,
		"file: [a]\n":                                                  false,
		"sha256: abc\n":                                                false,
		"errors: [{code: Retry}]\nfile: a\n":                           false,
		"errors: [{code: Retry}]\nsha256: \"" + digest + "\"\n":        false,
	} {
		dir := t.TempDir()
		casetest.Put(t, filepath.Join(dir, "one"), map[string]string{
			"config.yaml": "apiVersion: example.com/v1\nkind: X\nmetadata: {name: a}\nspec: {}\n",
			"expect.yaml": text,
		})
		_, err := LoadAll(dir)
		assert.Equal(t, good, err == nil, "the kit on %q: %v", text, err)
		err = valid("expect.yaml", []byte(text))
		assert.Equal(t, good, err == nil, "the schema on %q: %v", text, err)
	}
}
