package document

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// field is a field of a Go struct, by the rules of encoding/json.
type field struct {
	name      string
	index     []int // as in reflect.Value.FieldByIndex
	tagged    bool
	omitEmpty bool
	omitZero  bool
}

// structFields returns the fields that encoding/json reads and writes, in the order of their declaration, with those of
// embedded structs at the place of the struct. Of equal names the least embedded one counts, then the tagged one, then none.
func structFields(t reflect.Type) []field {
	var all []field
	collectFields(t, nil, nil, &all)
	byName := map[string][]field{}
	for _, f := range all {
		byName[f.name] = append(byName[f.name], f)
	}
	return slices.DeleteFunc(all, func(f field) bool {
		rivals := byName[f.name]
		if len(rivals) == 1 {
			return false
		}
		best := slices.MinFunc(rivals, compareFields)
		ties := 0
		for _, r := range rivals {
			if compareFields(r, best) == 0 {
				ties++
			}
		}
		return ties > 1 || !slices.Equal(f.index, best.index)
	})
}

func compareFields(a, b field) int {
	rank := func(f field) int {
		if f.tagged {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(len(a.index), len(b.index)), cmp.Compare(rank(a), rank(b)))
}

func collectFields(t reflect.Type, index []int, within []reflect.Type, all *[]field) {
	if slices.Contains(within, t) {
		return // a struct that embeds a pointer to itself
	}
	within = append(slices.Clip(within), t)
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		at := append(slices.Clip(index), i)
		if f.Anonymous && name == "" {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			// As in encoding/json: an unexported struct is embedded, but not a pointer to one, which cannot be set.
			if inner.Kind() == reflect.Struct && (f.IsExported() || f.Type.Kind() == reflect.Struct) {
				collectFields(inner, at, within, all)
				continue
			}
		}
		if !f.IsExported() {
			continue
		}
		has := func(option string) bool { return slices.Contains(strings.Split(options, ","), option) }
		*all = append(*all, field{
			name: cmp.Or(name, f.Name), index: at, tagged: name != "",
			omitEmpty: has("omitempty"), omitZero: has("omitzero"),
		})
	}
}

// knownFields has the fields of the types that were seen, as encoding/json has them: a program has few, and to look at one costs more than
// to decode a small document.
var knownFields sync.Map //nolint:gochecknoglobals // of types, which do not change

// fieldsOf returns structFields of t. The caller does not change them.
func fieldsOf(t reflect.Type) []field {
	known, ok := knownFields.Load(t)
	if !ok {
		known, _ = knownFields.LoadOrStore(t, structFields(t))
	}
	return known.([]field) //nolint:forcetypeassert,errcheck // it has nothing else
}
