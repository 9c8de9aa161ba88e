package tomledit

import (
	"bytes"
	"flag"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write the golden files")
	flag.Parse()
	os.Exit(m.Run())
}

func updating(t *testing.T) bool {
	t.Helper()
	return flag.Lookup("update").Value.String() == "true"
}

// seeds returns documents of every form, with their names.
func seeds(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/seeds/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d seeds, %v", len(files), err)
	}
	all := map[string][]byte{
		"empty": nil, "blank": []byte("\n \n"), "a comment": []byte("# c"), "no final line end": []byte("a = 1\n[t]\nb = 2"),
		"a header alone": []byte("[t]"), "two comments": []byte("\n# one\n\n# two\n[t]\n"),
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		all[name] = data
		if !bytes.Contains(data, []byte("\r")) {
			all[name+" with CRLF"] = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
			all[name+" cut off"] = bytes.TrimRight(data, "\n")
		}
	}
	return all
}

func parsed(t testing.TB, data []byte) *Document {
	t.Helper()
	d, err := Parse(data)
	if err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	return d
}

// decoded is what go-toml reads from a whole document. What we read and write is compared with it.
func decoded(t testing.TB, data []byte) map[string]any {
	t.Helper()
	table := map[string]any{}
	if err := toml.Unmarshal(data, &table); err != nil {
		t.Fatalf("go-toml: %v in\n%s", err, data)
	}
	return table
}

// same compares what was decoded. NaN is NaN here, and 0.0 is not -0.0.
func same(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, same)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, same)
	case float64:
		y, ok := b.(float64)
		return ok && (math.Float64bits(x) == math.Float64bits(y) || x != x && y != y)
	}
	return reflect.DeepEqual(a, b)
}

// generic turns a wanted value into what decoding gives.
func generic(value any) any {
	switch v := value.(type) {
	case []string:
		list := []any{}
		for _, each := range v {
			list = append(list, each)
		}
		return list
	case []any:
		list := []any{}
		for _, each := range v {
			list = append(list, generic(each))
		}
		return list
	case map[string]any:
		table := map[string]any{}
		for key, each := range v {
			table[key] = generic(each)
		}
		return table
	}
	return value
}

// modelSet is Set on a decoded document.
func modelSet(table map[string]any, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		below, ok := table[key].(map[string]any)
		if !ok {
			below = map[string]any{}
			table[key] = below
		}
		table = below
	}
	table[path[len(path)-1]] = generic(value)
}

// modelDelete is Delete on a decoded document. An empty table above it may be removed too, as in now.
func modelDelete(table, now map[string]any, path []string) {
	if len(path) > 1 {
		below, ok := table[path[0]].(map[string]any)
		if !ok {
			return
		}
		nowBelow, there := now[path[0]].(map[string]any)
		modelDelete(below, nowBelow, path[1:])
		if there || len(below) > 0 {
			return
		}
	}
	delete(table, path[0])
}

// paths returns the path of everything in a document that can be set or deleted.
func paths(d *Document) [][]string {
	var all [][]string
	var walk func(n *node)
	walk = func(n *node) {
		for _, child := range n.children {
			all = append(all, child.path(nil))
			walk(child)
		}
	}
	walk(d.root)
	return all
}

// isPartOf says whether the bytes of one text are in another in the same order.
func isPartOf(part, whole []byte) bool {
	for _, b := range whole {
		if len(part) > 0 && part[0] == b {
			part = part[1:]
		}
	}
	return len(part) == 0
}

// keeps says whether one text is the other with something inserted in at most two places.
func keeps(before, after []byte) bool {
	front := 0
	for front < len(before) && front < len(after) && before[front] == after[front] {
		front++
	}
	before, after = before[front:], after[front:]
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	return bytes.Contains(after, before)
}

func has(text []byte, part string) bool { return strings.Contains(string(text), part) }
