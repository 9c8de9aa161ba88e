package document

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

func (u *unmarshaler) scalar(dst reflect.Value, t *tree, p Path) {
	switch kind := dst.Kind(); {
	case kind == reflect.String:
		if t.kind != kindString {
			hint := ""
			if t.kind == kindNumber || t.kind == kindBool {
				hint = "put the value in quotes"
			}
			if t.kind == kindNumber && strings.HasSuffix(string(p), ".mode") {
				hint = `write the permission bits in octal and in quotes, such as "0644", which is 420 in decimal`
			}
			u.refuse(p, "must be a string", hint)
			return
		}
		dst.SetString(t.text)
	case kind == reflect.Bool:
		if t.kind != kindBool {
			u.refuse(p, "must be true or false", "")
			return
		}
		dst.SetBool(t.text == "true")
	case dst.CanInt(), dst.CanUint():
		u.integer(dst, t, p)
	case dst.CanFloat():
		u.float(dst, t, p)
	default:
		panic(fmt.Sprintf("document.Unmarshal: %s has no JSON form", dst.Type()))
	}
}

func (u *unmarshaler) integer(dst reflect.Value, t *tree, p Path) {
	if t.kind != kindNumber || strings.ContainsAny(t.text, ".eE") {
		hint := ""
		if t.kind == kindString {
			hint = "write the number without quotes"
		}
		u.refuse(p, "must be an integer", hint)
		return
	}
	bits := dst.Type().Bits()
	if dst.CanInt() {
		if n, err := strconv.ParseInt(t.text, 10, bits); err == nil {
			dst.SetInt(n)
			return
		}
		highest := int64(math.MaxInt64) >> (64 - bits)
		u.refuse(p, fmt.Sprintf("must be an integer between %d and %d", -highest-1, highest), "")
		return
	}
	n, err := strconv.ParseUint(t.text, 10, bits)
	if err != nil {
		u.refuse(p, fmt.Sprintf("must be an integer between 0 and %d", uint64(math.MaxUint64)>>(64-bits)), "")
		return
	}
	dst.SetUint(n)
}

func (u *unmarshaler) float(dst reflect.Value, t *tree, p Path) {
	if t.kind != kindNumber {
		u.refuse(p, "must be a number", "")
		return
	}
	f, err := strconv.ParseFloat(t.text, dst.Type().Bits())
	if err != nil {
		u.refuse(p, fmt.Sprintf("must be a number that fits in %d bits", dst.Type().Bits()), "")
		return
	}
	dst.SetFloat(f)
}

// plain returns the value of a field of type any.
func (u *unmarshaler) plain(t *tree, p Path) any {
	switch t.kind {
	case kindMapping:
		result := make(map[string]any, len(t.members))
		for i := range t.members {
			m := &t.members[i]
			result[m.name] = u.plain(&m.value, p.Field(m.name))
		}
		return result
	case kindList:
		result := make([]any, len(t.items))
		for i := range t.items {
			result[i] = u.plain(&t.items[i], p.Index(i))
		}
		return result
	case kindString:
		return t.text
	case kindBool:
		return t.text == "true"
	case kindNumber:
		return u.plainNumber(t, p)
	}
	return nil
}

func (u *unmarshaler) plainNumber(t *tree, p Path) any {
	if !strings.ContainsAny(t.text, ".eE") {
		if n, err := strconv.ParseInt(t.text, 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(t.text, 10, 64); err == nil {
			return n
		}
	}
	f, err := strconv.ParseFloat(t.text, 64)
	if err != nil {
		u.refuse(p, "must be a number that fits in 64 bits", "")
	}
	return f
}
