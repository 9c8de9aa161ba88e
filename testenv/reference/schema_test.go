package reference

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/contract/v1alpha1/schema"
)

func TestSchemasAreUpToDate(t *testing.T) {
	t.Parallel()
	all, err := source(t).Schemas(root)
	require.NoError(t, err)
	assert.Len(t, all, len(v1alpha1.Kinds())+3)
	for name, want := range all {
		got, err := os.ReadFile(SchemaFile(root, name))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want, got), "%s differs from the structs: make generate", name)
	}
}

// TestSchemaOfAnyDocument: the kind decides which schema applies; a foreign kind has none.
func TestSchemaOfAnyDocument(t *testing.T) {
	t.Parallel()
	c := editor(t)
	value := func(apiVersion, kind string) any {
		return map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"x": 1},
		}
	}
	assert.Error(t, c.Validate(value(v1alpha1.APIVersion, v1alpha1.KindSysctl)))
	assert.NoError(t, c.Validate(value("example.com/v1", v1alpha1.KindSysctl)))
	assert.NoError(t, c.Validate(value("example.com/v1", "Motd")))
	assert.Error(t, c.Validate(value(v1alpha1.APIVersion, "Sysctrl")))
	assert.Error(t, c.Validate(value(v1alpha1.Group+"/v1", "Motd")))
	assert.Error(t, c.Validate(value("machineadmin.cluster.x-k8s.io/v1alpha1", v1alpha1.KindSysctl)))
	assert.NoError(t, c.Validate(value("other.cluster.x-k8s.io/v1alpha1", "Motd")))
	assert.Error(t, c.Validate(value("example.com/v1", "motd")))
}

// editor is the schema of a document of any kind, with the schemas that it refers to.
func editor(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c, err := jsonschema.NewCompiler().Compile(SchemaFile(root, AnyDocument))
	require.NoError(t, err)
	return c
}

// compiled are the schemas, by kind, read by an independent validator.
func compiled(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	out := map[string]*jsonschema.Schema{}
	for _, kind := range v1alpha1.Kinds() {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.For(v1alpha1.APIVersion, kind)))
		require.NoError(t, err)
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		require.NoError(t, c.AddResource("schema.json", value))
		out[kind], err = c.Compile("schema.json")
		require.NoError(t, err)
	}
	return out
}

// TestSchemasAgreeWithThePlugins: every document that a plugin accepts in its conformance cases, and every example, is
// valid; one more field, or a field of another type, is not.
func TestSchemasAgreeWithThePlugins(t *testing.T) {
	t.Parallel()
	schemas, whole := compiled(t), editor(t)
	checked := map[string]int{}
	for _, pattern := range []string{"plugins/*/*/testdata/conformance/*/config.yaml", "contract/v1alpha1/examples/*.yaml", "examples/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			if refused(filepath.Dir(file)) {
				continue
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			stream, err := document.Decode(file, bytes.NewReader(text))
			require.NoError(t, err)
			for _, d := range stream.Documents {
				if schemas[d.Kind] == nil || d.APIVersion != v1alpha1.APIVersion {
					continue
				}
				value := decoded(t, d)
				assert.NoError(t, schemas[d.Kind].Validate(value), file)
				assert.NoError(t, whole.Validate(value), file)
				checked[d.Kind]++
				spec, ok := value["spec"].(map[string]any)
				require.True(t, ok)
				spec["no-such-field"] = true
				assert.Error(t, schemas[d.Kind].Validate(value), file)
				delete(spec, "no-such-field")
				spec["provider"] = 1
				assert.Error(t, schemas[d.Kind].Validate(value), file)
			}
		}
	}
	for _, kind := range v1alpha1.Kinds() {
		assert.Positive(t, checked[kind], kind)
	}
	for _, kind := range v1alpha1.MachineKinds() {
		assert.Greater(t, checked[kind], 10, kind)
	}
}

func decoded(t *testing.T, d *document.Document) map[string]any {
	t.Helper()
	text, err := d.JSON()
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	out, ok := value.(map[string]any)
	require.True(t, ok)
	return out
}

// refused says whether a conformance case expects its document to be refused.
func refused(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "expect.yaml"))
	return err == nil && strings.Contains(string(text), "InvalidConfig")
}

// TestSchemaOfASecret: an editor shows the forms of a secret, and nothing else is one.
func TestSchemaOfASecret(t *testing.T) {
	t.Parallel()
	c := compiled(t)[v1alpha1.KindContainerRuntime]
	value := func(password any) map[string]any {
		return map[string]any{
			"apiVersion": v1alpha1.APIVersion, "kind": v1alpha1.KindContainerRuntime, "metadata": map[string]any{"name": "a"},
			"spec": map[string]any{"registries": map[string]any{"example.com": map[string]any{
				"auth": map[string]any{"username": "u", "password": password},
			}}},
		}
	}
	assert.NoError(t, c.Validate(value(map[string]any{"value": "x"})))
	assert.Error(t, c.Validate(value("x")))
	assert.Error(t, c.Validate(value(map[string]any{"valeu": "x"})))
}

// TestSchemasRefuseNoMoreThanValidate: of all documents of this repository, those that a schema refuses are refused by the real command
// too, so that an editor never marks what is right.
func TestSchemasRefuseNoMoreThanValidate(t *testing.T) {
	t.Parallel()
	whole, bin := editor(t), built(t)
	checked, refused := 0, 0
	require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules") {
			return fs.SkipDir
		}
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		stream, _ := document.Decode(file, bytes.NewReader(bytes.ReplaceAll(text, []byte("${canary}"), []byte("canary"))))
		if stream == nil { // another file
			return nil
		}
		for _, d := range stream.Documents {
			if v1alpha1.New(d.Kind) == nil || d.APIVersion != v1alpha1.APIVersion {
				continue
			}
			checked++
			if whole.Validate(decoded(t, d)) == nil {
				continue
			}
			refused++
			t.Logf("%s: %s/%s", file, d.Kind, d.Name)
			var one bytes.Buffer
			var whole any
			data, err := d.JSON()
			require.NoError(t, err)
			require.Empty(t, document.Unmarshal(data, &whole))
			encoded(t, &one, whole)
			refusedBy(t, bin, one.Bytes())
		}
		return nil
	}))
	assert.Greater(t, checked, 300)
	assert.Greater(t, refused, 10)
	t.Logf("%d documents, of which the schemas refuse %d", checked, refused)
}
