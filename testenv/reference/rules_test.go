package reference

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// TestValidateHasTheRules: for each rule of each field there is a value that breaks it, and the host or the plugins refuse a document with it,
// at that field. They suggest a value that is nearly right, and name a bound.
func TestValidateHasTheRules(t *testing.T) {
	t.Parallel()
	s, bin := source(t), built(t)
	count := 0
	for _, kind := range v1alpha1.Kinds() {
		fields := s.object(kindsPackage+"."+kind, nil).Properties.schemas
		parts := map[string]*jsonSchema{"spec": fields["spec"]}
		if kind == v1alpha1.KindSysctl {
			parts["metadata"] = fields["metadata"]
		}
		for part, schema := range parts {
			var stream bytes.Buffer
			var broken, says []string // the field that a document breaks and a part of the error, by the number in its name
			eachRule(part, schema, func(at, rule, part string, value any) {
				if at == "metadata.name" { // without which no error names its document
					return
				}
				document := map[string]any{"apiVersion": v1alpha1.APIVersion, "kind": kind, "spec": map[string]any{}}
				document[strings.SplitN(at, ".", 2)[0]] = value
				metadata, _ := document["metadata"].(map[string]any)
				if metadata == nil {
					metadata = map[string]any{}
				}
				metadata["name"] = fmt.Sprintf("%s-%d", strings.ToLower(rule), len(broken))
				document["metadata"] = metadata
				if kind == v1alpha1.KindEncryptedConfig { // another algorithm may be one of a later release
					part = ""
				}
				says = append(says, part)
				broken = append(broken, fmt.Sprintf("%s/%s: %s", kind, metadata["name"], at))
				encoded(t, &stream, document)
			})
			out := refusedBy(t, bin, stream.Bytes())
			for i, field := range broken {
				// An address is not taken from a host name, and a name not from an interface: the plugin refuses the source.
				if source := field[:strings.LastIndexByte(field, '.')]; strings.HasSuffix(source, "From") && !strings.Contains(out, field+": ") {
					field = source
				}
				_, message, found := strings.Cut(out, field+": ")
				message, _, _ = strings.Cut(message, "\n/") // the next error begins with the path of the file
				assert.True(t, found, "no error is at %s", field)
				assert.Contains(t, message, says[i], field)
			}
			count += len(broken)
		}
	}
	require.NoError(t, s.err)
	assert.Greater(t, count, 100)
}

func encoded(t *testing.T, stream *bytes.Buffer, d any) {
	t.Helper()
	stream.WriteString("---\n")
	require.NoError(t, document.Encode(stream, d))
}

// refusedBy returns what the real command says of a stream that it refuses.
func refusedBy(t *testing.T, bin string, stream []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "node.yaml")
	require.NoError(t, os.WriteFile(file, stream, 0o600))
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "machineadm"), "validate", "--plugin-dir", bin, "--path", file).CombinedOutput()
	require.Error(t, err)
	return string(out)
}

// eachRule calls found with a spec that breaks one rule, for each rule of a schema and of what is below it, and with a part of the error.
func eachRule(at string, s *jsonSchema, found func(at, rule, says string, spec any)) {
	if len(s.Enum) > 0 {
		found(at, "enum", "did you mean "+s.Enum[0]+"?", s.Enum[0]+"x")
	}
	if s.Pattern != "" {
		found(at, "pattern", "", "-\n@\\")
	}
	if s.Minimum != nil {
		found(at, "minimum", strconv.FormatInt(*s.Minimum, 10), *s.Minimum-1)
	}
	if s.Maximum != nil {
		found(at, "maximum", strconv.FormatInt(*s.Maximum, 10), *s.Maximum+1)
	}
	if s.MinItems != nil {
		found(at, "minItems", "", []any{})
	}
	if s.Items != nil {
		eachRule(at+"[0]", s.Items, func(at, rule, says string, item any) { found(at, rule, says, []any{item}) })
	}
	if values, ok := s.Additional.(*jsonSchema); ok {
		const key = "localhost" // a registry, and a name of anything else
		eachRule(at+"."+key, values, func(at, rule, says string, value any) { found(at, rule, says, map[string]any{key: value}) })
	}
	if s.Properties != nil {
		for _, name := range s.Properties.names {
			eachRule(at+"."+name, s.Properties.schemas[name], func(at, rule, says string, value any) {
				found(at, rule, says, beside(name, value))
			})
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
