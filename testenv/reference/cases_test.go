package reference

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// TestEveryFieldHasACase: where a kind has several providers, each has a conformance case that sets each field, which it
// applies or refuses. A provider that ignores a field breaks SPEC G-4. The kit works on image roots, which Windows does not
// have, so that w32time has golden plans instead.
func TestEveryFieldHasACase(t *testing.T) {
	t.Parallel()
	spec := reflect.TypeFor[v1alpha1.TimesyncSpec]()
	for _, provider := range []string{"chronyd", "ntpd", "systemd"} {
		set := map[string]bool{}
		cases, err := filepath.Glob(filepath.Join(root, "plugins/timesync", provider, "testdata/conformance/*/config.yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, cases, provider)
		for _, file := range cases {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			data, err := document.JSON("", bytes.ReplaceAll(text, []byte("${canary}"), []byte("secret")))
			var parsed struct {
				Spec map[string]any `json:"spec"`
			}
			if err == nil && json.Unmarshal(data, &parsed) == nil { // some cases are not valid
				visit(spec, parsed.Spec, func(field string) { set[field] = true })
			}
		}
		visit(spec, nil, func(field string) {
			if !set[field] {
				t.Errorf("no conformance case of %s sets %s: add one in which the provider applies or refuses it", provider, field)
			}
		})
	}
}

// visit calls found with TYPE.FIELD for each field of a struct, and of the structs in it, that a value has. Without a value
// it does so for all.
func visit(of reflect.Type, value any, found func(field string)) {
	if list, ok := value.([]any); ok {
		for _, element := range list {
			visit(of, element, found)
		}
		return
	}
	for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice}, of.Kind()) {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of == reflect.TypeFor[v1alpha1.Secret]() {
		return
	}
	object, given := value.(map[string]any)
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner, has := object[name]
		switch {
		case field.Anonymous:
			visit(field.Type, value, found)
		case has || !given:
			found(of.Name() + "." + name)
			visit(field.Type, inner, found)
		}
	}
}
