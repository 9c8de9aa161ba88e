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
		var r representer
		t := r.value(reflect.ValueOf(doc), "", 0)
		if r.err == nil && (t.kind != kindMapping || len(t.members) == 0) {
			r.err = errors.New("it must be a mapping with at least one field")
		}
		if r.err != nil {
			return fmt.Errorf("encode document %d: %w", i+1, r.err)
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

// representer converts Go values to trees, up to the first error.
type representer struct {
	err error
}

// refuse sets the error unless there is one, and returns no value.
func (r *representer) refuse(p Path, err error) tree {
	switch {
	case r.err != nil:
	case p == "":
		r.err = err
	default:
		r.err = fmt.Errorf("%s: %w", p, err)
	}
	return tree{}
}

func (r *representer) value(v reflect.Value, p Path, depth int) tree {
	switch {
	case r.err != nil:
		return tree{}
	case depth > MaxDepth: // also for a cycle
		return r.refuse(p, errors.New(depthMessage))
	case !v.IsValid(), (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil():
		return tree{}
	}
	if t, done := r.self(v, p, depth); done {
		return t
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
func (r *representer) self(v reflect.Value, p Path, depth int) (t tree, done bool) {
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
		return tree{}, false
	}
	var data []byte
	var err error
	switch self := v.Interface().(type) {
	case interface{ Reveal() []byte }:
		value := r.text(string(self.Reveal()), p.Field("value"))
		return tree{kind: kindMapping, members: []member{{"value", value}}}, true
	case *json.Number:
		t = tree{kind: kindNumber, text: self.String()}
		r.checkTree(&t, p, depth)
		return t, true
	case json.Marshaler:
		if data, err = self.MarshalJSON(); err == nil {
			t, err = readTree(data)
		}
		if err == nil {
			t.unique(p, func(at Path) { r.refuse(at, errors.New("duplicate field")) })
			r.checkTree(&t, p, depth)
		}
	case encoding.TextMarshaler:
		if data, err = self.MarshalText(); err == nil {
			t = r.text(string(data), p)
		}
	default:
		return tree{}, false
	}
	if err != nil {
		return r.refuse(p, err), true
	}
	return t, true
}

func (r *representer) text(text string, p Path) tree {
	if !utf8.ValidString(text) {
		return r.refuse(p, errors.New("is not valid UTF-8"))
	}
	return tree{kind: kindString, text: text}
}

// checkTree refuses JSON of a marshaler that Decode would refuse.
func (r *representer) checkTree(t *tree, p Path, depth int) {
	if depth > MaxDepth {
		r.refuse(p, errors.New(depthMessage))
		return
	}
	if t.kind == kindNumber {
		// JSON and YAML read the same number, unless it does not fit.
		if _, message, _ := number(t.text); message != "" {
			r.refuse(p, errors.New(message))
		}
	}
	for i := range t.members {
		m := &t.members[i]
		r.checkKey(m.name, p)
		r.checkTree(&m.value, p.Field(m.name), depth+1)
	}
	for i := range t.items {
		r.checkTree(&t.items[i], p.Index(i), depth+1)
	}
}

func (r *representer) checkKey(name string, p Path) {
	if len(name) > MaxKeyBytes {
		r.refuse(p, fmt.Errorf("a key longer than %d bytes", MaxKeyBytes))
	}
	if !utf8.ValidString(name) {
		r.refuse(p, errors.New("a key is not valid UTF-8"))
	}
}

func (r *representer) object(v reflect.Value, p Path, depth int) tree {
	t := tree{kind: kindMapping}
	for _, f := range fieldsOf(v.Type()) {
		value, err := v.FieldByIndexErr(f.index)
		if err != nil { // behind an embedded nil pointer
			continue
		}
		if f.omitEmpty && isEmpty(value) || f.omitZero && isZero(value) {
			continue
		}
		t.members = append(t.members, member{f.name, r.value(value, p.Field(f.name), depth+1)})
	}
	return t
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

func (r *representer) table(v reflect.Value, p Path, depth int) tree {
	if v.Type().Key().Kind() != reflect.String {
		return r.refuse(p, errors.New("the keys of a map must be strings"))
	}
	if v.IsNil() {
		return tree{}
	}
	t := tree{kind: kindMapping}
	for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) }) {
		name := key.String()
		r.checkKey(name, p)
		t.members = append(t.members, member{name, r.value(v.MapIndex(key), p.Key(name), depth+1)})
	}
	return t
}

func (r *representer) list(v reflect.Value, p Path, depth int) tree {
	if v.Kind() == reflect.Slice && v.IsNil() {
		return tree{}
	}
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		return tree{kind: kindString, text: base64.StdEncoding.EncodeToString(v.Bytes())}
	}
	t := tree{kind: kindList}
	for i := range v.Len() {
		t.items = append(t.items, r.value(v.Index(i), p.Index(i), depth+1))
	}
	return t
}

func (r *representer) scalar(v reflect.Value, p Path) tree {
	switch {
	case v.Kind() == reflect.String:
		return r.text(v.String(), p)
	case v.Kind() == reflect.Bool:
		return tree{kind: kindBool, text: strconv.FormatBool(v.Bool())}
	case v.CanInt():
		return tree{kind: kindNumber, text: strconv.FormatInt(v.Int(), 10)}
	case v.CanUint():
		return tree{kind: kindNumber, text: strconv.FormatUint(v.Uint(), 10)}
	case v.CanFloat():
		f := v.Float()
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return r.refuse(p, errors.New("infinity and NaN have no form in a document"))
		}
		if v.Kind() == reflect.Float32 { // the shortest text that is this float32, not the float64 next to it
			f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'g', -1, 32), 64) // a number that was just written
		}
		return tree{kind: kindNumber, text: formatFloat(f)}
	}
	return r.refuse(p, fmt.Errorf("the type %s has no form in a document", v.Type()))
}
