package controller

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// TestOddNames: a reference with a name that no object can have is a condition that names the field, and no request. There is no
// client, so that a request would panic.
func TestOddNames(t *testing.T) {
	t.Parallel()
	for _, odd := range oddNames() {
		check := func(field string, err error) {
			t.Helper()
			stopped := asStop(err)
			require.NotNil(t, stopped, "%q: %v", odd, err)
			assert.Equal(t, bootstrap.ReasonInvalidReference, stopped.reason, "%q", odd)
			assert.Contains(t, stopped.message, field+": ", "%q", odd)
		}
		w := rendering(bootstrap.Format{}, nil)
		w.reading.inputs, w.reading.making = newInputs(nil), true
		read := func() error {
			_, err := w.sources(t.Context())
			return err
		}
		if odd != "" { // without a name it is no reference: InvalidDocument
			spec := runtime.RawExtension{Raw: []byte(`{"a":{"valueFrom":{"secretKeyRef":{"name":` + quoted(t, odd) + `,"key":"k"}}}}`)}
			w.config.Spec.Documents = []bootstrap.Document{{APIVersion: "example.com/v1", Kind: "Test", Name: "a", Spec: spec}}
			check("spec.documents[0]: spec.a.valueFrom.secretKeyRef.name", read())
		}
		w.config.Spec.Documents = []bootstrap.Document{{APIVersion: "example.com/v1", Kind: "Test", Name: "a"}}
		w.config.Spec.Format.TemplateRef = &bootstrap.TemplateReference{Kind: "ConfigMap", Name: odd}
		check("spec.format.templateRef.name", read())
		w.config.Spec.PluginRefs = []bootstrap.PluginReference{{APIGroup: "example.com", Kind: "Test", Name: odd}}
		check("spec.pluginRefs[0].name", read())
		w.config.Spec.PluginRefs = nil
		w.config.Spec.PluginTemplateRefs = []bootstrap.PluginReference{{APIGroup: "example.com", Kind: "TestTemplate", Name: odd}}
		check("spec.pluginTemplateRefs[0].name", read())
		if odd != "" { // none yet
			s := source{placement: &bootstrap.Placement{}}
			check("HTTPProxy site: status.secretName", foreign(&s, plugin(reported(3, odd, condition("Ready", "True", "", "")))))
		}
		found, err := w.r.cluster(t.Context(), client.ObjectKey{Namespace: "a", Name: odd})
		require.NoError(t, err)
		assert.Nil(t, found)
	}
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	out, err := json.Marshal(text)
	require.NoError(t, err)
	return string(out)
}

// TestOddNamesInSchemas: the API server refuses the names, and takes the longest, wherever a schema has a reference.
func TestOddNamesInSchemas(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("config/crd/*_*.yaml")
	require.NoError(t, err)
	references := 0
	var visit func(file string, properties map[string]apiextensionsv1.JSONSchemaProps)
	visit = func(file string, properties map[string]apiextensionsv1.JSONSchemaProps) {
		for field, s := range properties {
			if field == "status" {
				continue
			}
			if s.Items != nil {
				s.Properties = s.Items.Schema.Properties
			} else if s.AdditionalProperties != nil {
				s.Properties = s.AdditionalProperties.Schema.Properties
			}
			if slices.Contains([]string{"secretKeyRef", "templateRef", "pluginRefs", "pluginTemplateRefs"}, field) {
				references++
				name := s.Properties["name"]
				for _, odd := range oddNames() {
					long := len(odd) > int(*name.MaxLength)
					assert.True(t, long || !regexp.MustCompile(name.Pattern).MatchString(odd), "%s: %s: %q", file, field, odd)
				}
				assert.Regexp(t, name.Pattern, strings.Repeat("a.", 126)+"a")
				if key, has := s.Properties["key"]; has {
					assert.NotRegexp(t, key.Pattern, "a\n", "%s: %s", file, field)
					assert.Regexp(t, key.Pattern, ".dockerconfigjson")
				}
			}
			visit(file, s.Properties)
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var definition apiextensionsv1.CustomResourceDefinition
		require.NoError(t, yaml.Unmarshal(text, &definition))
		visit(file, definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties)
	}
	assert.Greater(t, references, 20)
}

// oddNames are names that no object has.
func oddNames() []string {
	return []string{
		"", ".", "..", "../../other/secrets/of-others", "a/b", "/a", "a/", "%2e%2e", "a%2Fb", "A", "a_b", "-a", "a-", ".a", "a.", "a..b",
		"a\x00b", "a\n", "\na", "a b", "ä", "a?watch=1", "a#b", `a\b`, strings.Repeat("a", 254), "a\u202eb",
	}
}
