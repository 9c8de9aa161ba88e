package document

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// excluder is a struct that explains the absence of a field. The result is the hint for it, or "".
type excluder interface{ NoField(name string) string }

// Unmarshal decodes a JSON document into the struct that into points to, by its json tags, and returns all violations: unknown
// and duplicate fields, wrong types, numbers out of range. It sets every field that decodes; a field that does not keeps its
// value, an item of a list or map that does not is zero, and the first of duplicates counts. Names match exactly; null means
// absent.
//
// Further validation can therefore run on the decoded value, and one pass reports everything:
//
//	violations := document.Unmarshal(data, &doc)
//	violations = document.Join(violations, validate(doc))
//
// A caller that does not validate must not use into after violations.
//
// For types with json.Unmarshaler or encoding.TextUnmarshaler, their error is the message and must not quote the value (errors
// of the standard library, which do, are replaced). A struct with the method NoField(name string) string has hints for fields that
// it does not have. An integer in an any is an int64 or uint64. No message quotes a value.
// Unmarshal panics if into is not a pointer or contains a type without a JSON form, such as a channel.
func Unmarshal(data []byte, into any) []Violation {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		panic("document.Unmarshal: into must be a pointer")
	}
	root, err := readTree(data)
	if err != nil {
		return []Violation{{Message: err.Error()}}
	}
	u := unmarshaler{own: map[uintptr]bool{}}
	root.unique("", func(p Path) { u.refuse(p, "duplicate field", "remove one of the two") })
	result := copyOf(target.Elem())
	u.fill(result, &root, "")
	target.Elem().Set(result)
	return u.violations
}

// fill sets dst, which is addressable and shares no memory with the caller's value, to t. Parts of t with a wrong type leave
// their part of dst unchanged.
func (u *unmarshaler) fill(dst reflect.Value, t *tree, p Path) {
	if dst.Kind() == reflect.Pointer {
		u.pointer(dst, t, p)
		return
	}
	if u.self(dst, t, p) {
		return
	}
	if dst.Kind() == reflect.Interface && dst.NumMethod() == 0 {
		if value := u.plain(t, p); value != nil {
			dst.Set(reflect.ValueOf(value))
		} else {
			dst.SetZero()
		}
		return
	}
	if t.kind == kindNull {
		u.refuse(p, "must have a value", "write one, or remove the entry")
		return
	}
	switch dst.Kind() {
	case reflect.Struct:
		u.object(dst, t, p)
	case reflect.Map:
		u.table(dst, t, p)
	case reflect.Slice, reflect.Array:
		u.list(dst, t, p)
	default:
		u.scalar(dst, t, p)
	}
}

// pointer sets dst to a new value, unless t as a whole does not decode.
func (u *unmarshaler) pointer(dst reflect.Value, t *tree, p Path) {
	if t.kind == kindNull {
		return
	}
	fresh := reflect.New(dst.Type().Elem())
	if !dst.IsNil() {
		fresh.Elem().Set(dst.Elem())
	}
	before := len(u.violations)
	u.fill(fresh.Elem(), t, p)
	if !slices.ContainsFunc(u.violations[before:], func(v Violation) bool { return v.Field == string(p) }) {
		dst.Set(fresh)
	}
}

// self uses the type's own unmarshaler, if any. After an error it restores the previous value.
func (u *unmarshaler) self(dst reflect.Value, t *tree, p Path) bool {
	switch reader := dst.Addr().Interface().(type) {
	case *json.Number:
		if t.kind != kindNumber {
			u.refuse(p, "must be a number", "")
			return true
		}
		*reader = json.Number(t.text)
	case json.Unmarshaler:
		if t.again {
			return true // reported
		}
		before := copyOf(dst)
		if err := reader.UnmarshalJSON(bytes.Clone(t.raw)); err != nil {
			hint := ""
			if t.kind != kindMapping && implements[interface{ Reveal() []byte }](dst.Type()) {
				hint = written(p, dst.Type())
			}
			u.refuse(p, safeText(err, t), hint)
			dst.Set(before)
		}
	case encoding.TextUnmarshaler:
		if t.kind != kindString {
			u.refuse(p, "must be a string", "put the value in quotes")
			return true
		}
		before := copyOf(dst)
		if err := reader.UnmarshalText([]byte(t.text)); err != nil {
			u.refuse(p, safeText(err, t), "")
			dst.Set(before)
		}
	default:
		return false
	}
	return true
}

func copyOf(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	return c
}

// safeText returns the text of an unmarshaler's error, or a general one if it comes from the standard library or quotes the
// value.
func safeText(err error, t *tree) string {
	const general = "does not have the form of this field"
	var (
		syntax *json.SyntaxError
		typed  *json.UnmarshalTypeError
		number *strconv.NumError
		moment *time.ParseError
		base   base64.CorruptInputError
	)
	text := err.Error()
	if errors.As(err, &syntax) || errors.As(err, &typed) || errors.As(err, &number) || errors.As(err, &moment) ||
		errors.As(err, &base) || text == "" {
		return general
	}
	const minLength = 6 // a shorter value can match the message by chance
	if len(t.raw) >= minLength && strings.Contains(text, string(t.raw)) || len(t.text) >= minLength && strings.Contains(text, t.text) {
		return general
	}
	return text
}

func (u *unmarshaler) object(dst reflect.Value, t *tree, p Path) {
	if t.kind != kindMapping {
		u.refuse(p, "must be a mapping", written(p, dst.Type()))
		return
	}
	fields := fieldsOf(dst.Type())
	u.within = append(u.within, level{p, dst.Type()})
	defer func() { u.within = u.within[:len(u.within)-1] }()
	for i := range t.members {
		m := &t.members[i]
		at := p.Field(m.name)
		n := slices.IndexFunc(fields, func(f field) bool { return f.name == m.name })
		switch {
		case n < 0:
			hint := ""
			if of, ok := dst.Interface().(excluder); ok {
				hint = of.NoField(m.name)
			}
			u.refuse(at, unknownField, cmp.Or(hint, u.meant(p, m.name, fields)))
		case m.value.kind != kindNull:
			u.fill(u.reach(dst, fields[n].index), &m.value, at)
		}
	}
}

// meant returns a hint for an unknown name: a similar field of the same mapping, else the place of the field of this name: in
// a mapping that is a field of this one, or of one that contains it.
func (u *unmarshaler) meant(p Path, name string, fields []field) string {
	names := namesOf(fields)
	if near := Nearest(name, names); near == "" {
		for _, l := range slices.Backward(u.within) {
			if place := u.placeIn(l, name); place != "" && place != p.Field(name) {
				return "did you mean " + string(place) + "? Check the indentation"
			}
		}
	}
	return instead(name, names)
}

// placeIn returns the path of the field of this name in a mapping, or in the mappings that are its fields; "" if there is none.
func (u *unmarshaler) placeIn(l level, name string) Path {
	for _, f := range fieldsOf(l.of) {
		if f.name == name {
			return l.path.Field(name)
		}
	}
	for _, f := range fieldsOf(l.of) {
		inner := l.of.FieldByIndex(f.index).Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && slices.Contains(namesOf(fieldsOf(inner)), name) {
			return l.path.Field(f.name).Field(name)
		}
	}
	return ""
}

func namesOf(fields []field) []string {
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	return names
}

// reach returns the field at index. It copies the targets of the caller's embedded pointers first.
func (u *unmarshaler) reach(v reflect.Value, index []int) reflect.Value {
	for i, n := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if !u.own[v.Pointer()] {
				fresh := reflect.New(v.Type().Elem())
				if !v.IsNil() {
					fresh.Elem().Set(v.Elem())
				}
				v.Set(fresh)
				u.own[v.Pointer()] = true
			}
			v = v.Elem()
		}
		v = v.Field(n)
	}
	return v
}

func (u *unmarshaler) table(dst reflect.Value, t *tree, p Path) {
	if dst.Type().Key().Kind() != reflect.String {
		panic(fmt.Sprintf("document.Unmarshal: the keys of %s are not strings", dst.Type()))
	}
	if t.kind != kindMapping {
		u.refuse(p, "must be a mapping", written(p, dst.Type()))
		return
	}
	result := reflect.MakeMapWithSize(dst.Type(), len(t.members))
	for i := range t.members {
		m := &t.members[i]
		element := reflect.New(dst.Type().Elem()).Elem()
		u.fill(element, &m.value, p.Key(m.name))
		result.SetMapIndex(reflect.ValueOf(m.name).Convert(dst.Type().Key()), element)
	}
	dst.Set(result)
}

func (u *unmarshaler) list(dst reflect.Value, t *tree, p Path) {
	if dst.Type().Elem().Kind() == reflect.Uint8 && dst.Kind() == reflect.Slice && t.kind == kindString {
		data, err := base64.StdEncoding.DecodeString(t.text)
		if err != nil {
			u.refuse(p, "must be base64", "")
			return
		}
		dst.SetBytes(data)
		return
	}
	if t.kind != kindList {
		u.refuse(p, "must be a list", written(p, dst.Type()))
		return
	}
	result := reflect.New(dst.Type()).Elem()
	if dst.Kind() == reflect.Slice {
		result = reflect.MakeSlice(dst.Type(), len(t.items), len(t.items))
	} else if result.Len() != len(t.items) {
		u.refuse(p, fmt.Sprintf("must be a list of %d items", result.Len()), "")
		return
	}
	for i := range t.items {
		u.fill(result.Index(i), &t.items[i], p.Index(i))
	}
	dst.Set(result)
}
