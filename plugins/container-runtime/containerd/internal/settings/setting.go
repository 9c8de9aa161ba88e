package settings

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The plugins of containerd whose tables this plugin writes. Version 2 has all of CRI in one table, version 3 divides
// it. Source: docs/cri/config.md of containerd, and `containerd config default` of every release.
const (
	CRIPlugin      = "io.containerd.grpc.v1.cri"
	ImagesPlugin   = "io.containerd.cri.v1.images"
	RuntimePlugin  = "io.containerd.cri.v1.runtime"
	nriPlugin      = "io.containerd.nri.v1.nri"
	transferPlugin = "io.containerd.transfer.v1.local"
)

// Setting is one value of containerd's configuration. Formatted or marshaled it is its path, never its value.
type Setting struct {
	// Path is the keys of its tables and its own key.
	Path []string
	// Value is a string, bool, int64, float64, []string, or, from a patch, a []any of these and of tables.
	Value any
	// Field is the field of the document that asks for it.
	Field string
	// Secret hides the value from plans and logs.
	Secret bool
}

// Format writes the path.
func (s Setting) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Dotted(s.Path)) } // a fmt.State does not fail

// MarshalText returns the path, for logs.
func (s Setting) MarshalText() ([]byte, error) { return []byte(Dotted(s.Path)), nil }

// Origin is the field that asks for the setting, or the name of this program.
func (s Setting) Origin() string { return cmp.Or(s.Field, "machineadm") }

// Is reports whether the setting has this path.
func (s Setting) Is(path ...string) bool { return slices.Equal(s.Path, path) }

// Dotted writes a path as TOML does.
func Dotted(path []string) string {
	keys := slices.Clone(path)
	for i, key := range keys {
		if !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(key) {
			keys[i] = strconv.Quote(key)
		}
	}
	return strings.Join(keys, ".")
}

// within reports whether one of two paths leads to the other.
func within(a, b []string) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}

// Same compares a value that containerd reports with one that was set. containerd reports one type of integer, lists of
// anything, and a table in a list with every key that such a table can have.
func Same(now, want any) bool { return covers(General(now), General(want)) }

func covers(now, want any) bool {
	switch want := want.(type) {
	case []any:
		list, ok := now.([]any)
		return ok && slices.EqualFunc(list, want, covers)
	case map[string]any:
		table, ok := now.(map[string]any)
		for key, value := range want {
			has, given := table[key]
			ok = ok && (given && covers(has, value) || !given && IsZero(value))
		}
		return ok
	}
	return reflect.DeepEqual(now, want)
}

// General converts integers to int64, lists to []any and tables to map[string]any.
func General(value any) any {
	v := reflect.ValueOf(value)
	switch {
	case v.CanInt():
		return v.Int()
	case v.Kind() == reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = General(v.Index(i).Interface())
		}
		return list
	case v.Kind() == reflect.Map:
		table := map[string]any{}
		for _, key := range v.MapKeys() {
			table[key.String()] = General(v.MapIndex(key).Interface())
		}
		return table
	}
	return value
}

// IsZero reports whether a value is the zero of its type, nil or an empty list or table.
func IsZero(value any) bool {
	v := reflect.ValueOf(value)
	return !v.IsValid() || v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
