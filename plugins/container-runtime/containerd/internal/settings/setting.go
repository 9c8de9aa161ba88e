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

// same compares what the daemon says with what was set: it has one kind of integer, lists of anything, and prints a table
// of a list with all the keys that such a table can have.
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

func General(value any) any {
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = General(v.Index(i).Interface())
		}
		return list
	case reflect.Map:
		table := map[string]any{}
		for _, key := range v.MapKeys() {
			table[key.String()] = General(v.MapIndex(key).Interface())
		}
		return table
	}
	return value
}

func IsZero(value any) bool {
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

// within says whether one of two paths leads to the other.
func within(a, b []string) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}

// sortedKeys are the keys of a map in their order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// The tables of containerd's configuration that this plugin writes to. In version 2 all of CRI is in one; version 3
// divides it. Source: docs/cri/config.md of containerd, and `containerd config default` of every release.
const (
	CRIPlugin      = "io.containerd.grpc.v1.cri"
	ImagesPlugin   = "io.containerd.cri.v1.images"
	RuntimePlugin  = "io.containerd.cri.v1.runtime"
	nriPlugin      = "io.containerd.nri.v1.nri"
	transferPlugin = "io.containerd.transfer.v1.local"
)

// setting is one value of containerd's configuration. Formatted or logged it shows where it stands, never its value.
type Setting struct {
	// path is the keys of its tables, then its own.
	Path []string
	// value is a string, bool, int64, float64, []string, or of a patch an []any of these and of tables.
	Value any
	// field is the field of the document that asks for it.
	Field string
	// secret says that the value is not for everyone's eyes.
	Secret bool
}

// Format shows the path.
func (s Setting) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Dotted(s.Path)) } // a fmt.State has nowhere to report to

// a fmt.State has nowhere to report to

// MarshalText returns the path, for logs.
func (s Setting) MarshalText() ([]byte, error) { return []byte(Dotted(s.Path)), nil }

// origin is the field that asks for it.
func (s Setting) Origin() string { return cmp.Or(s.Field, "machineadm") }

// dotted is a path as TOML writes it.
func Dotted(path []string) string {
	keys := slices.Clone(path)
	for i, key := range keys {
		if !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(key) {
			keys[i] = strconv.Quote(key)
		}
	}
	return strings.Join(keys, ".")
}
