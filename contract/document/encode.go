package document

import (
	"cmp"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Encode writes documents as a stream that Decode reads back to the same values. The encoding is deterministic.
//
// Fields are named, omitted and embedded by their json tags as in encoding/json, in the order of their declaration; the keys
// of maps are sorted. A value with a method Reveal() []byte is a secret and is written as a mapping with the single key
// value; this takes precedence over json.Marshaler and encoding.TextMarshaler. After an error nothing is written; an error
// names the field and quotes no value.
func Encode(w io.Writer, documents ...any) error {
	if len(documents) == 0 {
		return errors.New("encode: no document")
	}
	var out []byte
	for i, doc := range documents {
		r := representer{fields: typeFields{}}
		t, err := r.value(reflect.ValueOf(doc), "", 0)
		if err != nil {
			return fmt.Errorf("encode document %d: %w", i+1, err)
		}
		if t.kind != kindMapping || len(t.members) == 0 {
			return fmt.Errorf("encode document %d: it must be a mapping with at least one field", i+1)
		}
		if i > 0 {
			out = append(out, "---\n"...)
		}
		out = emitDocument(out, &t)
	}
	if _, err := w.Write(out); err != nil {
		return fmt.Errorf("write the document stream: %w", err)
	}
	return nil
}

// representer converts Go values to trees.
type representer struct{ fields typeFields }

// fieldError adds the path of a field to an error.
func fieldError(p Path, err error) error {
	if p == "" {
		return err
	}
	return fmt.Errorf("%s: %w", p, err)
}

func (r representer) value(v reflect.Value, p Path, depth int) (tree, error) {
	if depth > MaxDepth { // also for a cycle
		return tree{}, fieldError(p, errors.New(depthMessage))
	}
	if !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil() {
		return tree{}, nil
	}
	if t, done, err := r.self(v, p, depth); done {
		return t, err
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return r.value(v.Elem(), p, depth)
	case reflect.Struct:
		return r.object(v, p, depth)
	case reflect.Map:
		return r.table(v, p, depth)
	case reflect.Slice, reflect.Array:
		return r.list(v, p, depth)
	}
	return r.scalar(v, p)
}

// self uses the value's own marshaler, if any, also one with a pointer receiver.
func (r representer) self(v reflect.Value, p Path, depth int) (t tree, done bool, err error) {
	if v.Kind() != reflect.Pointer && v.Kind() != reflect.Interface {
		pointer := reflect.New(v.Type())
		if v.CanAddr() {
			pointer = v.Addr()
		} else {
			pointer.Elem().Set(v)
		}
		v = pointer
	}
	if !v.CanInterface() {
		return tree{}, false, nil
	}
	switch self := v.Interface().(type) {
	case interface{ Reveal() []byte }:
		value, err := textTree(string(self.Reveal()), p.Field("value"))
		return tree{kind: kindMapping, members: []member{{"value", value}}}, true, err
	case *json.Number:
		t = tree{kind: kindNumber, text: self.String()}
		return t, true, r.checkTree(&t, p, depth)
	case json.Marshaler:
		data, err := self.MarshalJSON()
		if err != nil {
			return tree{}, true, fieldError(p, err)
		}
		if t, err = readTree(data); err != nil {
			return tree{}, true, fieldError(p, err)
		}
		return t, true, r.checkTree(&t, p, depth)
	case encoding.TextMarshaler:
		data, err := self.MarshalText()
		if err != nil {
			return tree{}, true, fieldError(p, err)
		}
		t, err = textTree(string(data), p)
		return t, true, err
	}
	return tree{}, false, nil
}

func textTree(text string, p Path) (tree, error) {
	if !utf8.ValidString(text) {
		return tree{}, fieldError(p, errors.New("is not valid UTF-8"))
	}
	return tree{kind: kindString, text: text}, nil
}

// checkTree refuses JSON of a marshaler that Decode would refuse.
func (r representer) checkTree(t *tree, p Path, depth int) error {
	if depth > MaxDepth {
		return fieldError(p, errors.New(depthMessage))
	}
	if t.kind == kindNumber {
		// JSON and YAML read the same number, unless it does not fit.
		if _, message, _ := number(t.text); message != "" {
			return fieldError(p, errors.New(message))
		}
	}
	seen := map[string]bool{}
	for i := range t.members {
		m := &t.members[i]
		if seen[m.name] {
			return fieldError(p.Field(m.name), errors.New("duplicate field"))
		}
		seen[m.name] = true
		if err := checkKey(m.name, p); err != nil {
			return err
		}
		if err := r.checkTree(&m.value, p.Field(m.name), depth+1); err != nil {
			return err
		}
	}
	for i := range t.items {
		if err := r.checkTree(&t.items[i], p.Index(i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func checkKey(name string, p Path) error {
	if len(name) > MaxKeyBytes {
		return fieldError(p, fmt.Errorf("a key longer than %d bytes", MaxKeyBytes))
	}
	if !utf8.ValidString(name) {
		return fieldError(p, errors.New("a key is not valid UTF-8"))
	}
	return nil
}

func (r representer) object(v reflect.Value, p Path, depth int) (tree, error) {
	t := tree{kind: kindMapping}
	for _, f := range r.fields.of(v.Type()) {
		value, err := v.FieldByIndexErr(f.index)
		if err != nil { // behind an embedded nil pointer
			continue
		}
		if f.omitEmpty && isEmpty(value) || f.omitZero && isZero(value) {
			continue
		}
		at := p.Field(f.name)
		field, err := r.value(value, at, depth+1)
		if err != nil {
			return tree{}, err
		}
		t.members = append(t.members, member{f.name, field})
	}
	return t, nil
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

func isZero(v reflect.Value) bool {
	if v.CanInterface() && (v.Kind() != reflect.Pointer || !v.IsNil()) {
		if z, ok := v.Interface().(interface{ IsZero() bool }); ok {
			return z.IsZero()
		}
		if v.CanAddr() {
			if z, ok := v.Addr().Interface().(interface{ IsZero() bool }); ok {
				return z.IsZero()
			}
		}
	}
	return v.IsZero()
}

func (r representer) table(v reflect.Value, p Path, depth int) (tree, error) {
	if v.Type().Key().Kind() != reflect.String {
		return tree{}, fieldError(p, errors.New("the keys of a map must be strings"))
	}
	if v.IsNil() {
		return tree{}, nil
	}
	t := tree{kind: kindMapping}
	for _, key := range v.MapKeys() {
		name := key.String()
		if err := checkKey(name, p); err != nil {
			return tree{}, err
		}
		value, err := r.value(v.MapIndex(key), p.Key(name), depth+1)
		if err != nil {
			return tree{}, err
		}
		t.members = append(t.members, member{name, value})
	}
	slices.SortFunc(t.members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	return t, nil
}

func (r representer) list(v reflect.Value, p Path, depth int) (tree, error) {
	if v.Kind() == reflect.Slice && v.IsNil() {
		return tree{}, nil
	}
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		return tree{kind: kindString, text: base64.StdEncoding.EncodeToString(v.Bytes())}, nil
	}
	t := tree{kind: kindList}
	for i := range v.Len() {
		item, err := r.value(v.Index(i), p.Index(i), depth+1)
		if err != nil {
			return tree{}, err
		}
		t.items = append(t.items, item)
	}
	return t, nil
}

func (r representer) scalar(v reflect.Value, p Path) (tree, error) {
	switch {
	case v.Kind() == reflect.String:
		return textTree(v.String(), p)
	case v.Kind() == reflect.Bool:
		return tree{kind: kindBool, text: strconv.FormatBool(v.Bool())}, nil
	case v.CanInt():
		return tree{kind: kindNumber, text: strconv.FormatInt(v.Int(), 10)}, nil
	case v.CanUint():
		return tree{kind: kindNumber, text: strconv.FormatUint(v.Uint(), 10)}, nil
	case v.CanFloat():
		f := v.Float()
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return tree{}, fieldError(p, errors.New("infinity and NaN have no form in a document"))
		}
		if v.Kind() == reflect.Float32 { // the shortest text that is this float32, not the float64 next to it
			f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'g', -1, 32), 64) // a number that was just written
		}
		return tree{kind: kindNumber, text: formatFloat(f)}, nil
	}
	return tree{}, fieldError(p, fmt.Errorf("the type %s has no form in a document", v.Type()))
}
