package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machineadm/machineadm/contract/document"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
)

const secretForm = "{valueFrom: {secretKeyRef: {name: NAME, key: KEY}}}"

// Error has every violation of a spec. It wraps the errors of lookup. It never quotes a value.
type Error struct {
	Violations []document.Violation
	causes     []error
}

// Error returns the violations, each with its field and hint.
func (e *Error) Error() string {
	all := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		all[i] = v.Message
		if v.Field != "" {
			all[i] = v.Field + ": " + v.Message
		}
		if v.Hint != "" {
			all[i] += " (" + v.Hint + ")"
		}
	}
	return strings.Join(all, "; ")
}

// Unwrap returns the errors of lookup.
func (e *Error) Unwrap() []error { return e.causes }

// Reference names a key of a Secret in the namespace of the object.
type Reference struct{ Name, Key string }

// References returns the keys of Secrets that a spec refers to, each once, sorted. Of a spec that Contract refuses it returns the
// references that are valid. It returns an *Error if one has a name or a key that no Secret can have.
func References(spec []byte) ([]Reference, error) {
	var all []Reference
	r := resolver{lookup: func(name, key string) ([]byte, error) {
		all = append(all, Reference{name, key})
		return nil, nil
	}}
	r.spec(spec, nil)
	slices.SortFunc(all, func(a, b Reference) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
	})
	if len(r.names) > 0 {
		return nil, &Error{Violations: r.names}
	}
	return slices.Compact(all), nil
}

// resolver replaces references to Secrets by their values.
type resolver struct {
	lookup     func(name, key string) ([]byte, error)
	violations []document.Violation
	names      []document.Violation // the violations whose field is a name
	causes     []error
}

func (r *resolver) refuse(field document.Path, message, hint string) {
	r.violations = append(r.violations, document.Violation{Field: string(field), Message: message, Hint: hint})
}

// failed returns an *Error if the resolver has violations, or the decoding of its result has.
func (r *resolver) failed(decoding []document.Violation) error {
	if all := document.Join(decoding, r.violations); len(all) > 0 {
		return &Error{Violations: all, causes: r.causes}
	}
	return nil
}

// resolve returns a spec with values in place of references, or nil if it is absent, no mapping, or has a field twice.
func (r *resolver) resolve(data []byte, of reflect.Type) []byte {
	var body struct {
		Spec map[string]json.RawMessage `json:"spec"`
	}
	if r.violations = document.Unmarshal(wrapped(data), &body); len(r.violations) > 0 || len(data) == 0 {
		return nil
	}
	return r.spec(data, of)
}

// wrapped returns a document with the spec, so that field paths begin with spec.
func wrapped(spec []byte) []byte {
	if len(spec) == 0 {
		return []byte("{}")
	}
	if !json.Valid(spec) { // or it could end the wrapper
		return spec
	}
	return append(append([]byte(`{"spec":`), spec...), '}')
}

// spec returns the spec with values in place of references, or nil if it is not JSON. of is the struct of the contract for it; nil
// if its fields are unknown.
func (r *resolver) spec(data []byte, of reflect.Type) []byte {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var body any
	if err := decoder.Decode(&body); err != nil { // its error may quote
		r.refuse("spec", "is not JSON", "")
		return nil
	}
	out, err := json.Marshal(r.value(body, of, "spec"))
	if err != nil {
		r.refuse("spec", "is not JSON", "")
	}
	return out
}

// value replaces the references in a value, and the strings that a custom resource has for large integers. A value of another form than
// that of its type stays as it is: the decoding refuses it.
func (r *resolver) value(value any, of reflect.Type, at document.Path) any {
	if of != nil && of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of {
	case reflect.TypeFor[contract.Secret]():
		return r.confidential(value, at)
	case reflect.TypeFor[json.RawMessage]():
		of = nil
	}
	switch value := value.(type) {
	case string:
		if of != nil && of.Kind() == reflect.Uint64 && integer(value) {
			return json.Number(value)
		}
	case []any:
		if inner, known := part(of, reflect.Slice, ""); known {
			for i := range value {
				value[i] = r.value(value[i], inner, at.Index(i))
			}
		}
	case map[string]any:
		if reference, ok := reference(value); ok && of == nil {
			return r.named(reference, at)
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			absent := value[name] == nil && of != nil && of.Kind() == reflect.Struct
			if inner, known := part(of, reflect.Map, name); known && !absent {
				value[name] = r.value(value[name], inner, at.Field(name))
			}
		}
	}
	return value
}

// part returns the type of the items of a list or map, or of a field of a struct. known is false if the type has no such part. A value
// without a type has parts without a type: nil.
func part(of reflect.Type, kind reflect.Kind, name string) (inner reflect.Type, known bool) {
	switch {
	case of == nil:
		return nil, true
	case of.Kind() == kind:
		return of.Elem(), true
	case of.Kind() != reflect.Struct:
		return nil, false
	}
	for i := range of.NumField() {
		field := of.Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case tag == "" && field.Anonymous:
			inner, known = part(field.Type, kind, name)
		case tag == name:
			inner, known = field.Type, true
		}
		if known {
			return inner, true
		}
	}
	return nil, false
}

// integer reports whether a text is an unsigned integer as JSON writes it.
func integer(text string) bool {
	n, err := strconv.ParseUint(text, 10, 64)
	return err == nil && strconv.FormatUint(n, 10) == text
}

// confidential returns what a document has for the value of a field that is a secret.
func (r *resolver) confidential(value any, at document.Path) any {
	if reference, ok := reference(value); ok {
		return r.named(reference, at)
	}
	r.refuse(at, "must be a reference to a Secret", "write "+secretForm+", with a key of a Secret in this namespace")
	return map[string]any{"value": ""} // the decoding has nothing to add
}

func (r *resolver) named(reference map[string]any, at document.Path) any {
	return map[string]any{"value": r.secret(reference, at.Field("valueFrom").Field("secretKeyRef"))}
}

// reference returns the mapping below valueFrom and secretKeyRef.
func reference(value any) (map[string]any, bool) {
	found, ok := only(only(value, "valueFrom"), "secretKeyRef").(map[string]any)
	return found, ok
}

// only returns the value of a mapping whose single key is name, or nil.
func only(value any, name string) any {
	mapping, ok := value.(map[string]any)
	if !ok || len(mapping) != 1 {
		return nil
	}
	return mapping[name]
}

func (r *resolver) secret(reference map[string]any, at document.Path) string {
	name, _ := reference["name"].(string)
	key, _ := reference["key"].(string)
	if name == "" || key == "" || len(reference) != 2 {
		r.refuse(at, "must have a name and a key, and no other field", "write "+secretForm)
		return ""
	}
	before := len(r.violations)
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		r.refuse(at.Field("name"), "is not the name of a Secret", "use lower-case letters, digits, - and .")
	}
	if len(validation.IsConfigMapKey(key)) > 0 {
		r.refuse(at.Field("key"), "is not a key of a Secret", "use letters, digits, -, _ and .")
	}
	if found := r.violations[before:]; len(found) > 0 {
		r.names = append(r.names, found...)
		return ""
	}
	value, err := r.lookup(name, key)
	switch {
	case err != nil:
		r.refuse(at, err.Error(), "")
		r.causes = append(r.causes, err)
		return ""
	case !utf8.Valid(value):
		r.refuse(at, fmt.Sprintf("the key %q of the Secret %q is not UTF-8 text", key, name), "store text, such as base64 where the field accepts it")
	}
	return string(value)
}
