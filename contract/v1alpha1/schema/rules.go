package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// Rules are the rules of a field that its JSON schema states and of which it has the whole error: values, bounds and numbers of items. A pattern is
// not among them, because it has no sentence that says what is wrong with a text.
type Rules struct {
	Description string            `json:"description"`
	Enum        []string          `json:"enum"`
	Minimum     *int64            `json:"minimum"`
	Maximum     *int64            `json:"maximum"`
	MinItems    int               `json:"minItems"`
	Properties  map[string]*Rules `json:"properties"`
	Entries     entries           `json:"additionalProperties"`
	Items       *Rules            `json:"items"`
}

// entries are the rules of the values of a mapping. The schema of a mapping without other fields is false.
type entries struct{ *Rules }

func (e *entries) UnmarshalJSON(data []byte) error {
	if string(data) == "false" {
		return nil
	}
	return json.Unmarshal(data, &e.Rules)
}

var known sync.Map //nolint:gochecknoglobals // the rules by kind, which do not change

// RulesFor returns the rules of the spec of a kind, nil when this release has none. They are read from the schema at the first call.
func RulesFor(apiVersion, kind string) *Rules {
	if apiVersion != v1alpha1.APIVersion {
		return nil
	}
	kept, _ := known.Load(kind)
	rules, ok := kept.(*Rules)
	if !ok {
		if rules = RulesIn(For(apiVersion, kind)); rules != nil {
			known.Store(kind, rules)
		}
	}
	return rules
}

// RulesIn returns the rules of the spec in the JSON schema of a kind of this API version, nil for nil.
func RulesIn(schema []byte) *Rules {
	var whole Rules
	if schema == nil || json.Unmarshal(schema, &whole) != nil { // a test reads each
		return nil
	}
	return whole.Properties["spec"]
}

// Violations returns what the spec of a document, in JSON, has against its rules. A value of another type than its field is left out, as
// decoding refuses it, and so is null, which means absent. No message quotes a value.
func (r *Rules) Violations(doc []byte) (all []document.Violation) {
	var of struct {
		Spec any `json:"spec"`
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber() // a number of 64 bits stays exact
	if r != nil && d.Decode(&of) == nil {
		r.check("spec", of.Spec, func(at document.Path, message, hint string) {
			all = append(all, document.Violation{Field: string(at), Message: message, Hint: hint})
		})
	}
	return all
}

func (r *Rules) check(at document.Path, value any, refuse func(at document.Path, message, hint string)) {
	if r == nil {
		return
	}
	meaning, _, _ := strings.Cut(strings.TrimSuffix(r.Description, "."), ". ")
	switch v := value.(type) {
	case string:
		if len(r.Enum) > 0 && !slices.Contains(r.Enum, v) {
			refuse(at, "is not a value of this field", r.instead(v))
		}
	case json.Number:
		n, err := strconv.ParseInt(v.String(), 10, 64)
		if err == nil && (r.Minimum != nil && n < *r.Minimum || r.Maximum != nil && n > *r.Maximum) {
			refuse(at, r.bounds(), meaning)
		}
	case []any:
		if len(v) < r.MinItems {
			refuse(at, fmt.Sprintf("must have at least %d item(s)", r.MinItems), meaning)
		}
		for i, item := range v {
			r.Items.check(at.Index(i), item, refuse)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			cmp.Or(r.Properties[name], r.Entries.Rules).check(at.Field(name), v[name], refuse)
		}
	}
}

// instead returns a hint for a text that is not a value of the field.
func (r *Rules) instead(text string) string {
	values := slices.DeleteFunc(slices.Clone(r.Enum), func(v string) bool { return v == "" }) // as if the field were absent
	if near := document.Nearest(text, values); near != "" {
		return "did you mean " + near + "?"
	}
	return "use one of " + strings.Join(values, ", ")
}

func (r *Rules) bounds() string {
	switch {
	case r.Maximum == nil:
		return fmt.Sprintf("must be at least %d", *r.Minimum)
	case r.Minimum == nil:
		return fmt.Sprintf("must be at most %d", *r.Maximum)
	}
	return fmt.Sprintf("must be from %d to %d", *r.Minimum, *r.Maximum)
}
