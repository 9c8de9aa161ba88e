package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/host/controller/api/v1alpha1"
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

// References returns the keys of Secrets that a spec refers to, each once, sorted. Of a spec that Contract refuses it returns the
// references that are valid. It returns an *Error if one has a name or a key that no Secret can have.
func References(spec []byte) ([]v1alpha1.SecretKeyReference, error) {
	var all []v1alpha1.SecretKeyReference
	r := resolver{lookup: func(name, key string) ([]byte, error) {
		all = append(all, v1alpha1.SecretKeyReference{Name: name, Key: key})
		return nil, nil
	}}
	r.spec(spec)
	slices.SortFunc(all, func(a, b v1alpha1.SecretKeyReference) int {
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

// spec returns the spec with values in place of references, or nil if it is not JSON.
func (r *resolver) spec(data []byte) []byte {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var body any
	if err := decoder.Decode(&body); err != nil { // its error may quote
		r.refuse("spec", "is not JSON", "")
		return nil
	}
	out, err := json.Marshal(r.value(body, "spec"))
	if err != nil {
		r.refuse("spec", "is not JSON", "")
	}
	return out
}

func (r *resolver) value(value any, at document.Path) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = r.value(value[i], at.Index(i))
		}
	case map[string]any:
		source, _ := only(value, "valueFrom").(map[string]any)
		if reference, ok := only(source, "secretKeyRef").(map[string]any); ok {
			return map[string]any{"value": r.secret(reference, at.Field("valueFrom").Field("secretKeyRef"))}
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			value[name] = r.value(value[name], at.Field(name))
		}
	}
	return value
}

// only returns the value of a mapping whose single key is name, or nil.
func only(mapping map[string]any, name string) any {
	if len(mapping) != 1 {
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
