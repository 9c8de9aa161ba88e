package v1alpha1_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/api/v1alpha1"
)

// specs returns the type of the field Spec of each kind, in the contract and in the custom resource.
func specs(t *testing.T, kind string) (document, resource reflect.Type) {
	t.Helper()
	doc := reflect.TypeOf(contract.New(kind)).Elem()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	object, err := scheme.New(v1alpha1.GroupVersion().WithKind(kind))
	require.NoError(t, err)
	for _, other := range []string{"List", "Template", "TemplateList"} {
		assert.True(t, scheme.Recognizes(v1alpha1.GroupVersion().WithKind(kind+other)), kind+other)
	}
	in, _ := doc.FieldByName("Spec")
	out, _ := reflect.TypeOf(object).Elem().FieldByName("Spec")
	return in.Type, out.Type
}

// TestMirror: every field of the contract has one with the same JSON name and a type that reads the same values; there are no
// others.
func TestMirror(t *testing.T) {
	t.Parallel()
	for _, kind := range contract.MachineKinds() {
		document, resource := specs(t, kind)
		compare(t, kind, document, resource)
	}
}

func compare(t *testing.T, at string, document, resource reflect.Type) {
	t.Helper()
	in, out := fields(document), fields(resource)
	assert.Equal(t, names(in), names(out), at)
	for i, f := range in {
		if i < len(out) {
			compareType(t, at+"."+f.name, f.typ, out[i].typ)
		}
	}
}

func compareType(t *testing.T, at string, document, resource reflect.Type) {
	t.Helper()
	unsigned := document.Kind() == reflect.Uint64
	if plain := deref(document); plain == reflect.TypeFor[contract.Secret]() || plain == reflect.TypeFor[json.RawMessage]() || unsigned {
		resource = deref(resource) // optional, or zero is a value
	}
	same := map[reflect.Type]reflect.Type{
		reflect.TypeFor[contract.Secret]():      reflect.TypeFor[v1alpha1.SecretValue](),
		reflect.TypeFor[*contract.Secret]():     reflect.TypeFor[v1alpha1.SecretValue](),
		reflect.TypeFor[contract.IntOrString](): reflect.TypeFor[v1alpha1.IntOrString](),
		reflect.TypeFor[json.RawMessage]():      reflect.TypeFor[apiextensionsv1.JSON](),
		reflect.TypeFor[uint64]():               reflect.TypeFor[v1alpha1.IntOrString](),
		reflect.TypeFor[int]():                  reflect.TypeFor[int64](),
	}
	if want := same[document]; want != nil {
		assert.Equal(t, want, resource, at)
		return
	}
	if !assert.Equal(t, document.Kind(), resource.Kind(), at) {
		return
	}
	switch document.Kind() {
	case reflect.Struct:
		assert.Equal(t, document.Name(), resource.Name(), at)
		compare(t, at, document, resource)
	case reflect.Pointer, reflect.Slice, reflect.Map:
		compareType(t, at+"[]", document.Elem(), resource.Elem())
	default:
		assert.Equal(t, document, resource, at)
	}
}

func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

type field struct {
	name string
	typ  reflect.Type
}

// fields returns the fields of a struct with those of embedded structs in their place.
func fields(of reflect.Type) (all []field) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			all = append(all, fields(f.Type)...)
		} else {
			all = append(all, field{name, f.Type})
		}
	}
	return all
}

func names(all []field) (out []string) {
	for _, f := range all {
		out = append(out, f.name)
	}
	return out
}

// TestIntOrString: a large integer stays exact, and a text that only looks like an integer stays a text.
func TestIntOrString(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`1`: `1`, `-1`: `-1`, `"18446744073709551615"`: `18446744073709551615`, `18446744073709551615`: `18446744073709551615`,
		`"010"`: `"010"`, `"+1"`: `"+1"`, `"1 2"`: `"1 2"`, `""`: `""`, `"18446744073709551616"`: `"18446744073709551616"`,
	} {
		var v v1alpha1.IntOrString
		require.NoError(t, json.Unmarshal([]byte(in), &v), in)
		out, err := json.Marshal(v)
		require.NoError(t, err)
		assert.Equal(t, want, string(out), in)
	}
	var v v1alpha1.IntOrString
	assert.Error(t, json.Unmarshal([]byte("1.5"), &v))
}
