package crd_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
	"github.com/machineadm/machineadm/host/controller/render"
	"github.com/machineadm/machineadm/host/controller/wrap"
)

const examples = root + "/examples/cluster-api"

// resources are the objects of the examples, by file.
func resources(t *testing.T) map[string][]*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(examples + "/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := map[string][]*unstructured.Unstructured{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, part := range strings.Split(string(text), "\n---\n") {
			o := &unstructured.Unstructured{}
			fromYAML(t, []byte(part), &o.Object)
			all[file] = append(all[file], o)
		}
	}
	return all
}

// testExamples: the API server takes the examples of docs/cluster-api.md.
func testExamples(t *testing.T, c client.Client) {
	manager := &unstructured.Unstructured{} // its namespace, which the components make
	manager.SetAPIVersion("v1")
	manager.SetKind("Namespace")
	manager.SetName("machineadm-system")
	require.NoError(t, c.Create(t.Context(), manager))
	for file, objects := range resources(t) {
		for _, o := range objects {
			assert.NoError(t, c.Create(t.Context(), o, client.DryRunAll), "%s: %s %s", file, o.GetKind(), o.GetName())
		}
	}
}

// TestExamplesAreComplete: what a config of the examples refers to is among them, and makes documents; its user template works.
func TestExamplesAreComplete(t *testing.T) {
	t.Parallel()
	known := map[string]*unstructured.Unstructured{}
	for _, objects := range resources(t) {
		for _, o := range objects {
			assert.Nil(t, known[o.GetKind()+"/"+o.GetName()], "%s %s is in two places", o.GetKind(), o.GetName())
			known[o.GetKind()+"/"+o.GetName()] = o
		}
	}
	configs, wrapped := 0, 0
	for name, o := range known {
		spec := specOf(t, o)
		if spec == nil {
			continue
		}
		configs++
		var documents []emit.Document
		for _, ref := range append(spec.PluginRefs, spec.PluginTemplateRefs...) {
			if ref.APIGroup == contract.Group {
				plugin := known[ref.Kind+"/"+ref.Name]
				if assert.NotNil(t, plugin, "%s refers to %s %s", name, ref.Kind, ref.Name) {
					documents = append(documents, documentOf(t, plugin))
				}
			}
		}
		for _, d := range spec.Documents {
			documents = append(documents, made(t, d.Kind, d.Name, d.Spec.Raw))
		}
		if ref := spec.Format.TemplateRef; ref != nil {
			wrapped++
			testTemplate(t, &spec.Format, known[ref.Kind+"/"+ref.Name], documents)
		}
	}
	assert.Greater(t, configs, 5)
	assert.Equal(t, 2, wrapped)
}

// specOf is the spec of a config or of its template, nil for another object.
func specOf(t *testing.T, o *unstructured.Unstructured) *bootstrap.MachineBootstrapConfigSpec {
	t.Helper()
	data, err := json.Marshal(o.Object)
	require.NoError(t, err)
	switch o.GetKind() {
	case bootstrap.KindMachineBootstrapConfig:
		var config bootstrap.MachineBootstrapConfig
		require.NoError(t, json.Unmarshal(data, &config))
		return &config.Spec
	case bootstrap.KindMachineBootstrapConfig + "Template":
		var config bootstrap.MachineBootstrapConfigTemplate
		require.NoError(t, json.Unmarshal(data, &config))
		return &config.Spec.Template.Spec
	}
	return nil
}

// documentOf is the document that an object of a plugin kind or its template makes.
func documentOf(t *testing.T, o *unstructured.Unstructured) emit.Document {
	t.Helper()
	kind, template := strings.CutSuffix(o.GetKind(), "Template")
	path := []string{"spec"}
	if template {
		path = []string{"spec", "template", "spec"}
	}
	spec, _, err := unstructured.NestedMap(o.Object, path...)
	require.NoError(t, err)
	data, err := json.Marshal(spec)
	require.NoError(t, err)
	return made(t, kind, o.GetName(), data)
}

func made(t *testing.T, kind, name string, spec []byte) emit.Document {
	t.Helper()
	body, err := render.Contract(contract.APIVersion, kind, spec, func(string, string) ([]byte, error) { return []byte("secret"), nil })
	require.NoError(t, err, "%s %s", kind, name)
	if node, ok := body.(*contract.KubernetesNodeSpec); ok { // what the controller fills in
		node.Role, node.KubernetesVersion = "worker", "v1.36.3"
	}
	return emit.Document{
		Header: contract.Header{APIVersion: contract.APIVersion, Kind: kind, Metadata: contract.Metadata{Name: name}}, Spec: body,
	}
}

func testTemplate(t *testing.T, f *bootstrap.Format, from *unstructured.Unstructured, documents []emit.Document) {
	t.Helper()
	require.NotNil(t, from)
	text, _, err := unstructured.NestedString(from.Object, "data", "value")
	require.NoError(t, err)
	stream, err := emit.Stream(documents)
	require.NoError(t, err)
	data, err := new(wrap.Wrapper).Wrap(wrap.Format{Type: f.Type, Version: f.Version, Target: f.Target, Template: []byte(text)}, stream)
	require.NoError(t, err, from.GetName())
	if f.Type == bootstrap.FormatIgnition {
		assert.True(t, json.Valid(data.Value), "%s", data.Value)
	}
}
