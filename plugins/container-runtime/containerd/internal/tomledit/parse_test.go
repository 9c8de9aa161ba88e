package tomledit

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"a byte order mark", "\xef\xbb\xbfa = 1", "line 1, column 1: a byte order mark, which TOML does not allow"},
		{"UTF-16", "\xff\xfea\x00", "line 1, column 1: not UTF-8"},
		{"bad UTF-8 in a comment", "a = 1 # é\xe9", "line 1, column 10: not UTF-8"},
		{"NUL in a string", "a = \"x\x00\"", "line 1, column 7: not TOML: basic strings cannot have control characters"},
		{"NUL alone", "\x00", "line 1, column 1: not TOML: invalid character at start of key"},
		{"a lone carriage return", "a = 1\rb = 2", "line 1, column 6: not TOML: expected newline"},
		{"no value", "a = \n", "line 1, column 5: not TOML: unexpected character"},
		{"a word for a value", "a = canary\n", "line 1, column 5: not TOML: unexpected character"},
		{"more behind a value", "é.b = 1", "line 1, column 1: not TOML: invalid character at start of key"},
		{"a bad escape", "'é' = \"\\c\"", "line 1, column 8: not TOML: invalid escape character"},
		{"an open string", "a = 1\nb = \"canary", "line 2, column 11: not TOML: unterminated basic string"},
		{"an open array", "a = [1, # c\n", "line 1, column 12: not TOML: array is incomplete"},
		{"twice", "a = 1\n\na = 2\n", "line 3, column 1: a is already defined in line 1"},
		{"twice, inline", "t = {a.b = 1, a.b = 2}", "line 1, column 17: t.a.b is already defined in line 1"},
		{"twice, inline, in an array", "l = [1, {a = 1, a = 2}]", "line 1, column 5: not TOML: a number out of range, a date or time that does not exist, or a key that is defined twice"},
		{"a header twice", "[a]\n[ 'a' ]", "line 2, column 3: a is already defined in line 1"},
		{"a header of a dotted table", "[t]\n\"a b\".c = 1\n[t.'a b']", "line 3, column 4: t.\"a b\" is already defined in line 2"},
		{"a header in an inline table", "a = {}\n[a.b]", "line 2, column 2: a is already defined in line 1"},
		{"an array of tables of a table", "[a]\n[[a]]", "line 2, column 3: a is already defined in line 1"},
		{"a dotted key into a table with a header", "[a.b]\n[a]\nb.c = 1", "line 3, column 1: a.b is already defined in line 1"},
		{"a large integer", "a = 9223372036854775808", "line 1, column 5: not TOML: a number out of range, a date or time that does not exist, or a key that is defined twice"},
		{"no such day", "a = 2026-02-30", "line 1, column 5: not TOML: a number out of range, a date or time that does not exist, or a key that is defined twice"},
		{"deep keys", strings.Repeat("a.", MaxDepth) + "a = 1", "line 1, column 129: more than 64 keys deep"},
		{"deep tables", "a = " + strings.Repeat("{a = ", MaxDepth) + "1" + strings.Repeat("}", MaxDepth), "line 1, column 321: more than 64 keys deep"},
		{"too long", strings.Repeat("#", MaxSize+1), "the document is longer than 4 MiB"},
	} {
		_, err := Parse([]byte(c.text))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
		if fault := (*Error)(nil); !errors.As(err, &fault) {
			t.Errorf("%s: %T", c.name, err)
		}
	}
}

// A secret is in every value and every place that an error can point at.
func TestErrorsShowNoValues(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	text := strings.NewReplacer("SECRET", secret).Replace("a = \"SECRET\"\nb = 'SECRET'\nc = \"\"\"\nSECRET\\\n\"\"\"\nd = '''SECRET'''\n" +
		"e = [\"SECRET\", {a = \"SECRET\"}]\nf = {a.b = \"SECRET\"}\n[t]\nu = \"SECRET\"\n[[l]]\nv = \"SECRET\"\n")
	parsed(t, []byte(text))
	for _, junk := range []string{"", "SECRET", "\"SECRET", "=SECRET", "\"\\SECRET\"", "\x00SECRET", "[SECRET", "{SECRET", "\nSECRET", "\r", "\xff", "\"\"\"SECRET", "0SECRET", "tSECRET", "1979-99-99", "+SECRET"} {
		for cut := range len(text) {
			_, err := Parse([]byte(text[:cut] + strings.ReplaceAll(junk, "SECRET", secret)))
			if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "U+")) {
				t.Fatalf("%q behind %d bytes: %v", junk, cut, err)
			}
		}
	}
	d := parsed(t, []byte(text))
	for _, path := range paths(d) {
		for _, value := range []any{struct{ x string }{secret}, "x", secret + "\xff", []any{nil}, []any{int64(1), secret + "\xff"}} {
			for _, err := range []error{d.Set(append(path, "k"), value), d.Set(path, value), d.Delete(append(path, "k")...)} {
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Fatalf("%q: %v", path, err)
				}
			}
		}
	}
}

func TestGetAndKeys(t *testing.T) {
	t.Parallel()
	d := parsed(t, []byte(`z = 1
"io.containerd.grpc.v1.cri".sandbox = 'p'
d.e.f = [1, 'x', {y = 1.5}]
i = { b.c = true, a = {} }
[t . 'u.v']
k = """
x"""
[t]
day = 2026-11-20T08:00:00Z
[[l]]
n = 'a'
[l.sub]
x = 1
[[l]]
n = 'b'
[[l.m]]
[[l.m]]
[t."u.v".w]
`))
	for _, c := range []struct {
		path []string
		want any
		keys []string
	}{
		{[]string{"z"}, int64(1), nil},
		{[]string{"io.containerd.grpc.v1.cri"}, map[string]any{"sandbox": "p"}, []string{"sandbox"}},
		{[]string{"d", "e", "f"}, []any{int64(1), "x", map[string]any{"y": 1.5}}, nil},
		{[]string{"i", "b", "c"}, true, nil},
		{[]string{"i"}, map[string]any{"b": map[string]any{"c": true}, "a": map[string]any{}}, []string{"b", "a"}},
		{[]string{"t", "u.v"}, map[string]any{"k": "x", "w": map[string]any{}}, []string{"k", "w"}},
		{[]string{"t", "day"}, time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC), nil},
		{[]string{"l", "0", "sub", "x"}, int64(1), nil},
		{[]string{"l", "1", "m"}, []any{map[string]any{}, map[string]any{}}, []string{"0", "1"}},
		{[]string{"l", "1"}, map[string]any{"n": "b", "m": []any{map[string]any{}, map[string]any{}}}, []string{"n", "m"}},
	} {
		got, ok := d.Get(c.path...)
		if !ok || !d.Has(c.path...) || !same(got, c.want) || !slices.Equal(d.Keys(c.path...), c.keys) {
			t.Errorf("%q: got %#v %v, keys %q", c.path, got, ok, d.Keys(c.path...))
		}
	}
	if keys := d.Keys(); !slices.Equal(keys, []string{"z", "io.containerd.grpc.v1.cri", "d", "i", "t", "l"}) {
		t.Errorf("the document's keys: %q", keys)
	}
	for _, path := range [][]string{{"no"}, {"z", "x"}, {"l", "2"}, {"l", "n"}, {"io"}, {"d", "e", "f", "0"}, {"t", "u"}} {
		if v, ok := d.Get(path...); ok || v != nil || d.Has(path...) || d.Keys(path...) != nil {
			t.Errorf("%q: got %v", path, v)
		}
	}
}

func TestWhatIsReturnedIsTheCallersOwn(t *testing.T) {
	t.Parallel()
	text := []byte("a = [[1], {b = [2]}]")
	d := parsed(t, text)
	copy(text, "z")
	list, _ := must(d.Get("a")).([]any)
	inner, _ := list[1].(map[string]any)
	inner["b"], list[0] = 3, nil
	copy(d.Bytes(), "y")
	if got := must(d.Get("a")); !same(got, []any{[]any{int64(1)}, map[string]any{"b": []any{int64(2)}}}) || !has(d.Bytes(), "a = [[1]") {
		t.Errorf("got %v from %s", got, d.Bytes())
	}
}

// A table of many keys is not looked through one by one.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 40 {
		text.WriteString("k" + strings.Repeat("x", i) + " = 1\n")
	}
	d := parsed(t, []byte(text.String()))
	if len(d.Keys()) != 40 || !d.Has("k"+strings.Repeat("x", 39)) || d.root.index == nil {
		t.Error(d.Keys())
	}
}
