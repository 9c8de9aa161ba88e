package document

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
)

// SecretFields returns the field paths of the secrets in a document type, with [] for any item of a list or map:
// spec.registries[].auth.password. A secret is a type with a method Reveal() []byte, as for Encode. A recursive type is listed
// up to its repetition; a type with its own unmarshaler, and free-form JSON, has no listed fields.
func SecretFields(t reflect.Type) []string {
	var s secretFinder
	s.find(t, "", nil)
	return s.found
}

type secretFinder struct {
	found []string
}

func (s *secretFinder) find(t reflect.Type, p Path, above []reflect.Type) {
	switch {
	case implements[interface{ Reveal() []byte }](t):
		s.found = append(s.found, string(p))
		return
	case t.Kind() == reflect.Pointer:
		s.find(t.Elem(), p, above)
		return
	case slices.Contains(above, t), implements[json.Unmarshaler](t), implements[encoding.TextUnmarshaler](t):
		return
	}
	above = append(slices.Clip(above), t)
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		s.find(t.Elem(), p+"[]", above)
	case reflect.Struct:
		for _, f := range fieldsOf(t) {
			s.find(t.FieldByIndex(f.index).Type, p.Field(f.name), above)
		}
	}
}

func implements[I any](t reflect.Type) bool {
	i := reflect.TypeFor[I]()
	return t.Implements(i) || reflect.PointerTo(t).Implements(i)
}
