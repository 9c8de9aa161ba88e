package reference

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// TestPluginsHaveTheRules: for each rule of a field there is a value that breaks it, and the plugins refuse a document with it, at that field.
func TestPluginsHaveTheRules(t *testing.T) {
	t.Parallel()
	s, bin := source(t), built(t)
	var stream bytes.Buffer
	fields := map[string]string{} // by the name of the document
	for _, kind := range v1alpha1.MachineKinds() {
		root := s.object(kindsPackage+"."+kind, nil)
		eachRule("spec", root.Properties.schemas["spec"], func(at, rule string, spec any) {
			name := fmt.Sprintf("%s-%d", strings.ToLower(rule), len(fields))
			fields[kind+"/"+name] = at
			require.NoError(t, document.Encode(&stream, map[string]any{
				"apiVersion": v1alpha1.APIVersion, "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
			}))
			stream.WriteString("---\n")
		})
	}
	require.NoError(t, s.err)
	file := filepath.Join(t.TempDir(), "node.yaml")
	require.NoError(t, os.WriteFile(file, stream.Bytes(), 0o600))
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "machineadm"), "validate", "--plugin-dir", bin, "--path", file).CombinedOutput()
	require.Error(t, err)
	for name, field := range fields {
		// An address is not taken from a host name, and a name not from an interface: the plugin refuses the source.
		if source := field[:strings.LastIndexByte(field, '.')]; strings.HasSuffix(source, "From") && !strings.Contains(string(out), name+": "+field+": ") {
			field = source
		}
		assert.Contains(t, string(out), name+": "+field+": ", name)
	}
	assert.Greater(t, len(fields), 100)
}

// eachRule calls found with a spec that breaks one rule, for each rule of a schema and of what is below it.
func eachRule(at string, s *jsonSchema, found func(at, rule string, spec any)) {
	if len(s.Enum) > 0 {
		found(at, "enum", "~none~")
	}
	if s.Pattern != "" {
		found(at, "pattern", "-\n@\\")
	}
	if s.Minimum != nil {
		found(at, "minimum", *s.Minimum-1)
	}
	if s.Maximum != nil {
		found(at, "maximum", *s.Maximum+1)
	}
	if s.MinItems != nil {
		found(at, "minItems", []any{})
	}
	if s.Items != nil {
		eachRule(at+"[0]", s.Items, func(at, rule string, item any) { found(at, rule, []any{item}) })
	}
	if values, ok := s.Additional.(*jsonSchema); ok {
		const key = "localhost" // a registry, and a name of anything else
		eachRule(at+"."+key, values, func(at, rule string, value any) { found(at, rule, map[string]any{key: value}) })
	}
	if s.Properties != nil {
		for _, name := range s.Properties.names {
			eachRule(at+"."+name, s.Properties.schemas[name], func(at, rule string, value any) { found(at, rule, beside(name, value)) })
		}
	}
}

// beside returns a mapping with a field, and the one without which a plugin does not look at it.
func beside(name string, value any) map[string]any {
	fields := map[string]any{name: value}
	switch name {
	case "family":
		fields["interface"] = "eth0"
	case "jsonKeys":
		fields["file"] = "/run/instance.json"
	}
	return fields
}
