package document

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// SecretForm is what a hint shows for a secret, as a document has it.
const SecretForm = "{value: ...}"

// written returns a hint with the field at p and the form of a value of type t, such as "write servers: [{address: ...}]". A whole
// document has none.
func written(p Path, t reflect.Type) string {
	if p == "" {
		return ""
	}
	name := string(p[strings.LastIndexByte(string(p), '.')+1:])
	if name == "" || strings.HasSuffix(name, "]") { // an item, or an entry whose key is quoted
		return "write " + formOf(t, 0)
	}
	return "write " + name + ": " + formOf(t, 0)
}

// formOf returns the form of a value of type t in YAML, on one line: of a mapping the fields that it must have, or else its first.
func formOf(t reflect.Type, depth int) string {
	const (
		anything = "..."
		maxDepth = 4
	)
	switch {
	case t.Kind() == reflect.Pointer:
		return formOf(t.Elem(), depth)
	case implements[interface{ Reveal() []byte }](t):
		return SecretForm
	case depth == maxDepth, implements[json.Unmarshaler](t), implements[encoding.TextUnmarshaler](t):
		return anything
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return "[" + formOf(t.Elem(), depth+1) + "]"
	case reflect.Map:
		return "{NAME: " + formOf(t.Elem(), depth+1) + "}"
	case reflect.Struct:
		fields := fieldsOf(t)
		needed := slices.DeleteFunc(slices.Clone(fields), func(f field) bool { return f.omitEmpty || f.omitZero })
		if len(needed) == 0 {
			needed = fields[:min(1, len(fields))]
		}
		shown := make([]string, len(needed))
		for i, f := range needed {
			shown[i] = f.name + ": " + formOf(t.FieldByIndex(f.index).Type, depth+1)
		}
		return "{" + strings.Join(shown, ", ") + "}"
	}
	return anything
}
