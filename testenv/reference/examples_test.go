package reference

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/contract/v1alpha1/examples"
)

// embedded are the examples in another format, by the line before the block that holds the stream.
func embedded() map[string]string {
	return map[string]string{"cloud-init.yaml": "    content: |\n", "ignition.bu": "        inline: |\n"}
}

// TestExamples: the command accepts each stream of examples/, each document fits its schema, and the index lists each file.
// A new file is a stream, unless embedded says how to find the stream in it.
func TestExamples(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(root, "examples")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	whole, bin := editor(t), built(t)
	var files []string
	for _, e := range entries {
		if e.Name() == "README.md" || e.IsDir() { // testenv/crd reads cluster-api, testenv/fetch reads fetch
			continue
		}
		files = append(files, e.Name())
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		text := string(data)
		before, inside := embedded()[e.Name()]
		if inside {
			text = block(text, before)
		} else {
			assert.Equal(t, ".yaml", filepath.Ext(e.Name()), "embedded has no entry for %s", e.Name())
			modelines(t, dir, e.Name(), text)
		}
		stream, err := document.Decode(e.Name(), strings.NewReader(text))
		require.NoError(t, err)
		assert.Empty(t, stream.Errors)
		assert.NotEmpty(t, stream.Documents, e.Name())
		for _, d := range stream.Documents {
			assert.Contains(t, v1alpha1.Kinds(), d.Kind, e.Name())
			assert.NoError(t, whole.Validate(decoded(t, d)), "%s: %s/%s", e.Name(), d.Kind, d.Name)
		}
		validateStream(t, bin, strings.TrimSuffix(e.Name(), filepath.Ext(e.Name()))+".yaml", []byte(text))
	}
	assert.Subset(t, files, []string{
		"debian.yaml", "ubuntu.yaml", "flatcar.yaml", "rhel.yaml", "windows.yaml", "image-bake.yaml", "cloud-init.yaml",
		"ignition.bu", "air-gapped.yaml", "mirror.yaml", "proxy.yaml", "hardened.yaml", "domain-member.yaml",
		"remote.yaml",
	})
	index, err := os.ReadFile(filepath.Join(dir, "README.md"))
	require.NoError(t, err)
	var listed []string
	for _, row := range regexp.MustCompile(`(?m)^\| \[(.*)\]\((.*)\) \| .+ \|$`).FindAllStringSubmatch(string(index), -1) {
		assert.Equal(t, row[1], row[2])
		listed = append(listed, row[1])
	}
	slices.Sort(listed)
	assert.Equal(t, files, listed)
}

// modelines checks that every document names its schema: the editor's language server applies it to this document only.
func modelines(t *testing.T, dir, name, text string) {
	t.Helper()
	for i, chunk := range strings.Split("\n"+text, "\n---\n") {
		line, _, _ := strings.Cut(strings.TrimPrefix(chunk, "\n"), "\n")
		path, found := strings.CutPrefix(line, "# yaml-language-server: $schema=")
		assert.True(t, found, "document %d of %s has no modeline", i+1, name)
		assert.Equal(t, SchemaFile(filepath.Clean(root), AnyDocument), filepath.Join(dir, path))
	}
}

// block returns the block scalar behind a line, without its indentation. Of several it is the first.
func block(text, before string) string {
	_, text, _ = strings.Cut(text, before)
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	var out bytes.Buffer
	for line := range strings.Lines(text) {
		inner, found := strings.CutPrefix(line, indent)
		if !found && strings.TrimSpace(line) != "" {
			break
		}
		out.WriteString(inner)
	}
	return out.String()
}

// commentedOut is the # ahead of a field, which is there instead of another.
var commentedOut = regexp.MustCompile(`(?m)^( *)#(\S)`)

// TestExplainExamples: the command accepts what explain prints as an example. The full one has every field of the schema, with its comment, and
// those that exclude others fit the schema when they are no comments.
func TestExplainExamples(t *testing.T) {
	t.Parallel()
	schemas, bin := compiled(t), built(t)
	files, err := filepath.Glob(ExampleFile(root, "*"))
	require.NoError(t, err)
	assert.Len(t, files, 2*len(v1alpha1.Kinds()))
	for _, kind := range v1alpha1.Kinds() {
		for which, file := range map[string]string{"minimal": kind, "full": kind + examples.Full} {
			source, err := os.ReadFile(ExampleFile(root, file))
			require.NoError(t, err, "write an example of the kind")
			modelines(t, filepath.Dir(ExampleFile(root, file)), file, string(source))
			text, err := exec.CommandContext(t.Context(), filepath.Join(bin, "machineadm"), "explain", kind, "--example="+which).Output()
			require.NoError(t, err)
			validateStream(t, bin, file+".yaml", text)
			if which == "minimal" {
				continue
			}
			stream, err := document.Decode(file, bytes.NewReader(commentedOut.ReplaceAll(text, []byte("$1$2"))))
			require.NoError(t, err)
			require.Empty(t, stream.Errors)
			require.Len(t, stream.Documents, 1)
			value := decoded(t, stream.Documents[0])
			assert.NoError(t, schemas[kind].Validate(value), file)
			eachMissing("spec", schemas[kind].Properties["spec"], []any{value["spec"]}, func(field string) {
				t.Errorf("%s has no %s: add it, as a comment #FIELD: VALUE if another field excludes it", ExampleFile(root, file), field)
			})
			if kind == v1alpha1.KindSysctl {
				assert.Contains(t, string(text), "\n  # Kernel modules to load now and at boot.\n  modules: [overlay, br_netfilter]\n")
			}
		}
	}
}

// eachMissing calls missing with each field of a schema that none of the values has.
func eachMissing(at string, s *jsonschema.Schema, values []any, missing func(field string)) {
	if len(values) == 0 {
		return
	}
	var inner []any
	for _, v := range values {
		switch v := v.(type) {
		case []any:
			inner = append(inner, v...)
		case map[string]any:
			inner = append(inner, slices.Collect(maps.Values(v))...)
		}
	}
	for name, field := range s.Properties {
		var of []any
		for _, v := range values {
			if v, found := v.(map[string]any); found && v[name] != nil {
				of = append(of, v[name])
			}
		}
		if of == nil {
			missing(at + "." + name)
		}
		eachMissing(at+"."+name, field, of, missing)
	}
	if items := s.Items2020; items != nil {
		eachMissing(at+"[]", items, inner, missing)
	}
	if element, found := s.AdditionalProperties.(*jsonschema.Schema); found {
		eachMissing(at+".KEY", element, inner, missing)
	}
}
