package settings

import (
	"testing"
)

// TestSame: what a daemon adds to a table is not what was set to another value.
func TestSame(t *testing.T) {
	t.Parallel()
	tables := func(list ...map[string]any) []map[string]any { return list }
	unpack := []any{map[string]any{"platform": "linux/amd64", "snapshotter": "native", "differ": "", "limits": []any{int64(1)}}}
	for _, c := range []struct {
		now, want any
		same      bool
	}{
		{int64(3), 3, true},
		{int64(3), int64(4), false},
		{"3", int64(3), false},
		{[]any{"a", "b"}, []string{"a", "b"}, true},
		{[]any{"b", "a"}, []string{"a", "b"}, false},
		{[]any{"a", "b"}, []string{"a"}, false},
		{nil, []string{"a"}, false},
		{"a", []string{"a"}, false},
		{unpack, tables(map[string]any{"platform": "linux/amd64", "snapshotter": "native"}), true},
		{unpack, tables(map[string]any{"platform": "linux/amd64", "limits": []int64{1}}), true},
		{unpack, tables(map[string]any{"platform": "linux/amd64", "snapshotter": "overlayfs"}), false},
		{unpack, tables(map[string]any{"platform": "linux/amd64", "unknown": "x"}), false},
		{unpack, tables(map[string]any{"platform": "linux/amd64", "unknown": ""}), true},
		{unpack, tables(map[string]any{"platform": "linux/amd64"}, map[string]any{}), false},
		{map[string]any{"a": int64(1), "b": true}, map[string]any{"a": 1}, true},
		{"a", map[string]any{}, false},
	} {
		if got := Same(c.now, c.want); got != c.same {
			t.Errorf("same(%v, %v) = %v", c.now, c.want, got)
		}
	}
}
