package crd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/contract/document"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/render"
)

// sample is a document that a plugin accepts.
type sample struct {
	file string
	*document.Document
}

// samples are the documents of conformance cases and examples that have a custom resource, without those that a plugin refuses as
// invalid.
func samples(t *testing.T) (all []sample) {
	t.Helper()
	for _, pattern := range []string{"plugins/*/*/testdata/conformance/*/config.yaml", "contract/v1alpha1/examples/*.yaml", "examples/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			expected, err := os.ReadFile(filepath.Join(filepath.Dir(file), "expect.yaml"))
			if err == nil && strings.Contains(string(expected), "InvalidConfig") {
				continue
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			stream, err := document.Decode(file, bytes.NewReader(text))
			require.NoError(t, err)
			for _, d := range stream.Documents {
				if d.APIVersion == contract.APIVersion && slices.Contains(contract.MachineKinds(), d.Kind) {
					all = append(all, sample{file, d})
				}
			}
		}
	}
	return all
}

// secrets are the values that the objects of a sample refer to, by key.
type secrets map[string][]byte

func (s secrets) lookup(_, key string) ([]byte, error) {
	value, ok := s[key]
	if !ok {
		return nil, fmt.Errorf("no key %q", key)
	}
	return value, nil
}

// resource returns a JSON value of a type of the contract in the form of a custom resource.
func (s secrets) resource(value any, of reflect.Type) any {
	switch v := value.(type) {
	case map[string]any:
		if of == reflect.TypeFor[contract.Secret]() {
			key := fmt.Sprintf("key-%d", len(s))
			text, _ := v["value"].(string)
			s[key] = []byte(text)
			return map[string]any{"valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "s", "key": key}}}
		}
		for name := range v {
			switch of.Kind() {
			case reflect.Map:
				v[name] = s.resource(v[name], deref(of.Elem()))
			case reflect.Struct:
				if f, ok := fieldOf(of, name); ok {
					v[name] = s.resource(v[name], deref(f.Type))
				}
			}
		}
	case []any:
		for i := range v {
			if of.Kind() == reflect.Slice && of != reflect.TypeFor[json.RawMessage]() {
				v[i] = s.resource(v[i], deref(of.Elem()))
			}
		}
	case uint64: // what is larger than an int64
		if of.Kind() == reflect.Uint64 || of == reflect.TypeFor[contract.IntOrString]() {
			return fmt.Sprint(v)
		}
		return float64(v)
	}
	return value
}

func fieldOf(of reflect.Type, name string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(of) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func deref(of reflect.Type) reflect.Type {
	if of.Kind() == reflect.Pointer {
		return of.Elem()
	}
	return of
}

// object returns a custom resource of the kind, or of the kind of its template.
func object(kind, name string, spec any) *unstructured.Unstructured {
	if strings.HasSuffix(kind, "Template") {
		spec = map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "spec": spec}}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": contract.APIVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "default"}, "spec": spec,
	}}
}

// testSamples: the API server takes each document that a plugin accepts as an object and in a template, and the controller reads
// the same document from both.
func testSamples(t *testing.T, c client.Client) {
	checked := map[string]int{}
	for i, s := range samples(t) {
		want := contract.New(s.Kind)
		data, err := s.JSON()
		require.NoError(t, err)
		require.Empty(t, document.Unmarshal(data, want), s.file)
		var whole any
		require.Empty(t, document.Unmarshal(data, &whole))
		known := secrets{}
		resource, ok := known.resource(whole, reflect.TypeOf(want).Elem()).(map[string]any)
		require.True(t, ok)
		for _, kind := range []string{s.Kind, s.Kind + "Template"} {
			o := object(kind, fmt.Sprintf("sample-%d", i), resource["spec"])
			if !assert.NoError(t, c.Create(t.Context(), o), s.file) {
				continue
			}
			read := &unstructured.Unstructured{}
			read.SetGroupVersionKind(o.GroupVersionKind())
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(o), read))
			path := []string{"spec"}
			if kind != s.Kind {
				path = []string{"spec", "template", "spec"}
			}
			kept, _, err := unstructured.NestedMap(read.Object, path...)
			require.NoError(t, err)
			text, err := json.Marshal(kept)
			require.NoError(t, err)
			got, err := render.Contract(contract.APIVersion, s.Kind, text, known.lookup)
			require.NoError(t, err, s.file)
			references, err := render.References(text)
			require.NoError(t, err, s.file)
			assert.Len(t, references, len(known), s.file)
			assert.JSONEq(t, encoded(t, reflect.ValueOf(want).Elem().FieldByName("Spec").Addr().Interface()), encoded(t, got), s.file)
			checked[s.Kind]++
		}
	}
	for _, kind := range contract.MachineKinds() {
		assert.Greater(t, checked[kind], 20, kind)
	}
	t.Logf("objects by kind: %v", checked)
}

// encoded returns the spec as the document encoder writes it, with its secrets.
func encoded(t *testing.T, spec any) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, document.Encode(&out, map[string]any{
		"apiVersion": "example.com/v1", "kind": "Any", "metadata": map[string]any{"name": "a"}, "spec": spec,
	}))
	stream, err := document.Decode("", &out)
	require.NoError(t, err)
	require.Empty(t, stream.Errors)
	data, err := stream.Documents[0].JSON()
	require.NoError(t, err)
	return string(data)
}

// testNumbers: the API server keeps an integer of 64 bits, and refuses a larger one that is not a string.
func testNumbers(t *testing.T, c client.Client) {
	limit := func(hard any) *unstructured.Unstructured {
		return object(contract.KindContainerRuntime, "numbers", map[string]any{"runtimes": map[string]any{"runc": map[string]any{
			"baseSpec": map[string]any{"rlimits": map[string]any{"RLIMIT_NOFILE": map[string]any{"soft": int64(0), "hard": hard}}},
		}}})
	}
	const at = "spec.runtimes.runc.baseSpec.rlimits.RLIMIT_NOFILE.hard"
	for _, bad := range []any{float64(math.MaxUint64), 1.5, "many", "-1", true} {
		assert.Contains(t, refusal(t, c, limit(bad)), at, "%v", bad)
	}
	for _, good := range []any{int64(math.MaxInt64), int64(0), "18446744073709551615"} {
		o := limit(good)
		require.NoError(t, c.Create(t.Context(), o), "%v", good)
		text, err := json.Marshal(o.Object["spec"])
		require.NoError(t, err)
		got, err := render.Contract(contract.APIVersion, o.GetKind(), text, nil)
		require.NoError(t, err)
		assert.Contains(t, encoded(t, got), fmt.Sprintf(`"hard":%v`, good))
		require.NoError(t, c.Delete(t.Context(), o))
	}
}
