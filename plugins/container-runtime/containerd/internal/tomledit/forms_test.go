package tomledit

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestSetForms(t *testing.T) {
	t.Parallel()
	list := func(s ...string) []string { return s }
	for _, c := range []struct {
		name, text string
		path       []string
		value      any
		want       string
	}{
		// In place.
		{"plain", "a = 1 # c\n", list("a"), int64(2), "a = 2 # c # machineadm: changed\n"},
		{"blanks behind", "a = 1  \nb = 1", list("a"), int64(2), "a = 2   # machineadm: changed\nb = 1"},
		{"another type", "a=1", list("a"), "x", "a=\"x\" # machineadm: changed"},
		{"ours already", "a = 1 # machineadm\n", list("a"), int64(2), "a = 2 # machineadm\n"},
		{"ours, with more said", "a = 1 # c # machineadm: changed\n", list("a"), int64(2), "a = 2 # c # machineadm: changed\n"},
		{"no longer ours", "a = 1 # machineadm, but not so\n", list("a"), int64(2), "a = 2 # machineadm, but not so # machineadm: changed\n"},
		{"hexadecimal", "a = 0x10", list("a"), int64(16), "a = 0x10"},
		{"an integer is no float", "a = 1", list("a"), 1.0, "a = 1.0 # machineadm: changed"},
		{"zeros", "a = 0.0", list("a"), math.Copysign(0, -1), "a = -0.0 # machineadm: changed"},
		{"not a number", "a = nan", list("a"), math.NaN(), "a = nan"},
		{"infinite", "a = [inf]", list("a"), []any{math.Inf(1), math.Inf(-1)}, "a = [inf, -inf] # machineadm: changed"},
		{"literal stays literal", "a = 'x'", list("a"), `C:\x`, `a = 'C:\x' # machineadm: changed`},
		{"unless it cannot", "a = 'x'", list("a"), "it's", `a = "it's" # machineadm: changed`},
		{"basic stays basic", `a = "x"`, list("a"), `C:\"x"`, `a = "C:\\\"x\"" # machineadm: changed`},
		{"control characters", `a = "x"`, list("a"), "\x00\t\n\x7fé", `a = "\u0000\t\n\u007Fé" # machineadm: changed`},
		{"several lines", "a = '''\nx\n''' # c\nb = 1", list("a"), "y", "a = 'y' # c # machineadm: changed\nb = 1"},
		{"dotted", "a . b=1", list("a", "b"), true, "a . b=true # machineadm: changed"},
		{"another spelling", "[plugins . 'x'.\"y\"]\n'k' = 1", list("plugins", "x", "y", "k"), int64(2), "[plugins . 'x'.\"y\"]\n'k' = 2 # machineadm: changed"},
		{"inline", "a = {b = 1, c.d = [1]} # c", list("a", "c", "d"), list("x"), "a = {b = 1, c.d = [\"x\"]} # c # machineadm: changed c.d"},
		{"the same in an inline table", "a = {b = 1}", list("a", "b"), int64(1), "a = {b = 1}"},

		// New.
		{"behind the last key", "[a]\n  x = 1\n\n# b's\n[b]\n", list("a", "y"), int64(2), "[a]\n  x = 1\n  y = 2 # machineadm\n\n# b's\n[b]\n"},
		{"behind an array", "a = [\n1\n] # c\n[b]", list("c"), int64(2), "a = [\n1\n] # c\nc = 2 # machineadm\n[b]"},
		{"into an empty section", "[a]\n\tk = 1\n[b] # c", list("b", "y"), int64(2), "[a]\n\tk = 1\n[b] # c\n\ty = 2 # machineadm"},
		{"a comment that touches both tables", "[a]\nx = 1\n# About b.\n[b]", list("a", "c", "k"), true, "[a]\nx = 1\n\n[a.c] # machineadm\nk = true # machineadm\n# About b.\n[b]"},
		{"implied table", "[a.b]\nk = 1\n[c]", list("a", "x"), int64(1), "[a.b]\nk = 1\n\n[a] # machineadm\nx = 1 # machineadm\n[c]"},
		{"implied by an array of tables", "[[a.b]]\nk = 1\n", list("a", "x"), int64(1), "[[a.b]]\nk = 1\n\n[a] # machineadm\nx = 1 # machineadm\n"},
		{"less deep", "\t [a.b]\n\t [a.b.c]\n", list("a", "x"), int64(1), "\t [a.b]\n\t [a.b.c]\n\n\t [a] # machineadm\n\t x = 1 # machineadm\n"},
		{"less deep by two", "  [a.b]\n    [a.b.c]\n", list("a", "x"), int64(1), "  [a.b]\n    [a.b.c]\n\n[a] # machineadm\n  x = 1 # machineadm\n"},
		{"as deep as its siblings", "[a]\n    [a.b]\n\t[a.c]\n[d]", list("a", "x", "k"), true, "[a]\n    [a.b]\n\t[a.c]\n\n\t[a.x] # machineadm\n\t    k = true # machineadm\n[d]"},
		{"dotted", "[t]\na.b = 1\na.c.d = 2\nz = 1\n", list("t", "a", "c", "e"), "x", "[t]\na.b = 1\na.c.d = 2\na.c.e = \"x\" # machineadm\nz = 1\n"},
		{"dotted, with its spelling", "'a b' . \"c\" = 1", list("a b", "d e"), "x", "'a b' . \"c\" = 1\n'a b'.'d e' = \"x\" # machineadm"},
		{"inline, first", "a = {}", list("a", "b"), int64(1), "a = {b = 1} # machineadm: added b"},
		{"inline, with blanks", "a = {   }", list("a", "b"), int64(1), "a = { b = 1   } # machineadm: added b"},
		{"inline, below", "a = {b.c = 1, d = 2}", list("a", "b", "x", "y"), int64(1), "a = {b.c = 1, b.x.y = 1, d = 2} # machineadm: added b.x.y"},
		{"inline, in turn", "a = {b = {}} # machineadm: changed b", list("a", "b", "#,"), int64(1), "a = {b = {\"#,\" = 1}} # machineadm: changed b, added b.\"\\u0023\\u002C\""},
		{"inline, where a mark was left", "a = {} # machineadm: changed b", list("a", "b"), true, "a = {b = true} # machineadm: changed b, added b"},
		{"inline, between relatives", "t = {a.b = 1, c = 2, a.d = 3}", list("t", "k"), true, "t = {a.b = 1, c = 2, a.d = 3, k = true} # machineadm: added k"},
		{"inline, in what is ours", "a = {b = {}} # machineadm: added b", list("a", "b", "c"), int64(1), "a = {b = {c = 1}} # machineadm: added b"},
		{"strange keys", "", list("", "a.b", "c\"d", "é", "\n"), int64(1), "[\"\".\"a.b\".'c\"d'.\"é\"] # machineadm\n\"\\n\" = 1 # machineadm\n"},
		{"nested lists", "", list("a"), []any{[]string{"x"}, []any{}, map[string]any{"k": int64(1)}}, "a = [[\"x\"], [], {k = 1}] # machineadm\n"},
	} {
		d := parsed(t, []byte(c.text))
		if err := d.Set(c.path, c.value); err != nil || string(d.Bytes()) != c.want {
			t.Errorf("%s: %v\ngot:  %q\nwant: %q", c.name, err, d.Bytes(), c.want)
		}
		checkSet(t, []byte(c.text), c.path, c.value)
	}
}

func TestWhatCannotBeDone(t *testing.T) {
	t.Parallel()
	text := "s = 'secret'\n\n[t]\nk = [1]\nd.e = 1979-05-27\ni = {x.y = 1.5}\n[[l]]\nx = 1\n[l.sub]\n"
	for _, c := range []struct {
		path, want string
		value      any
	}{
		{"s/a", "s.a: line 1, column 1: s is a value, so that a cannot be in it", true},
		{"t/k/a/b c", `t.k.a."b c": line 4, column 1: t.k is a value, so that a."b c" cannot be in it`, true},
		{"t/d/e/f", "t.d.e.f: line 5, column 1: t.d.e is a value, so that f cannot be in it", true},
		{"t/i/x/y/z", "t.i.x.y.z: line 6, column 6: t.i.x.y is a value, so that z cannot be in it", true},
		{"t", "t: line 3, column 1: t is a table, which a value does not replace", true},
		{"t/d", "t.d: line 5, column 1: t.d is a table, which a value does not replace", true},
		{"t/i", "t.i: line 6, column 1: t.i is a table, which a value does not replace", true},
		{"l", "l: line 7, column 1: l is an array of tables, which is not edited", []any{}},
		{"l/0/x", "l.0.x: line 7, column 1: l is an array of tables, which is not edited", true},
		{"l/sub/x", "l.sub.x: line 7, column 1: l is an array of tables, which is not edited", true},
		{"t", "t: a table cannot be set: set its values", map[string]any{"a": int64(1)}},
		{"t/n", "t.n: a int cannot be set", 1},
		{"t/n", "t.n: a <nil> cannot be set", []any{nil}},
		{"t/n", "t.n: a string that is not UTF-8", "\xff"},
		{"t/n", "t.n: a key that is not UTF-8", []any{map[string]any{"\xff": true}}},
		{"t/\xff", "a key that is not UTF-8", true},
		{strings.Repeat("a/", MaxDepth) + "a", strings.Repeat("a.", MaxDepth) + "a: a value more than 64 levels deep", true},
	} {
		d := parsed(t, []byte(text))
		err := d.Set(strings.Split(c.path, "/"), c.value)
		if err == nil || err.Error() != c.want || string(d.Bytes()) != text {
			t.Errorf("%s: got %v\nwant %s", c.path, err, c.want)
		}
	}
	d := parsed(t, []byte(text))
	if err := d.Set(nil, map[string]any{}); err == nil {
		t.Error("the document was set")
	}
	if err := d.Delete(); err == nil {
		t.Error("the document was deleted")
	}
	if err := d.Delete("l", "0", "x"); err == nil || err.Error() != "l.0.x: line 7, column 1: l is an array of tables, which is not edited" {
		t.Error(err)
	}
}

func TestDeleteForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, path, want string }{
		{"plain", "# c\na = 1 # d\n# e\n", "a", "# c\n# e\n"},
		{"the last line", "a = 1\nb = 2", "b", "a = 1"},
		{"the only line", "b = 2", "b", ""},
		{"several lines", "a = [\n1, # c\n] # d\nb = '''\n\n'''", "a", "b = '''\n\n'''"},
		{"CRLF", "a = 1\r\nb = 2", "b", "a = 1"},
		{"dotted", "a.b = 1\nc = 1\na.d = 1\n", "a", "c = 1\n"},
		{"a table with what is below", "[a]\nx = 1\n\n[a.b]\n[c]\n[[a.l]]\nx = 1\n", "a", "\n[c]\n"},
		{"an implied table", "[a.b.c]\n[d]\n[a.b.e]", "a/b", "[d]"},
		{"an array of tables", "[[a]]\n[a.b]\n[[a]]\n[c]", "a", "[c]"},
		{"inline, in the middle", "t = { a = 1 , b = 2 , c = 3 }", "t/b", "t = { a = 1 , c = 3 }"},
		{"inline, first", "t = {a = 1 , b = 2}", "t/a", "t = {b = 2}"},
		{"inline, dotted", "t = {a.b = 1, c = 2, a.d = 3}", "t/a", "t = {c = 2}"},
		{"inline, between relatives", "t = {a.b = 1, c = 2, a.d = 3}", "t/c", "t = {a.b = 1, a.d = 3}"},
		{"inline, with marks", "t = {a.b = 1, c = 2} # d # machineadm: added a.b, changed c", "t/a/b", "t = {c = 2} # d # machineadm: changed c"},
		{"inline, with the last mark", "t = {a.b = 1, c = 2} # d # machineadm: changed a.b", "t/a", "t = {c = 2} # d"},
		{"inline, over several lines", "t = {\n  # a's\n  a = 1, # c\n  b = 2,\n}", "t/b", "t = {\n  # a's\n  a = 1, # c\n}"},
		{"inline, a comma behind a comment", "t = {\na = 1 # c\n, b = 2}", "t/a", "t = {\n # c\n b = 2}"},
		{"the header that came with it", "a = 1\n\n[b] # machineadm\nk = 1 # machineadm\n", "b/k", "a = 1\n"},
		{"a header of another author", "[b] # of machineadm\nk = 1 # machineadm\n", "b/k", "[b] # of machineadm\n"},
		{"not while another key is there", "[b] # machineadm\nk = 1 # machineadm\nl = 2\n", "b/k", "[b] # machineadm\nl = 2\n"},
		{"nothing", "a = 1", "b/c", "a = 1"},
		{"nothing in a value", "a = 1", "a/c", "a = 1"},
	} {
		d := parsed(t, []byte(c.text))
		if err := d.Delete(strings.Split(c.path, "/")...); err != nil || string(d.Bytes()) != c.want {
			t.Errorf("%s: %v\ngot:  %q\nwant: %q", c.name, err, d.Bytes(), c.want)
		}
		checkDelete(t, []byte(c.text), strings.Split(c.path, "/"))
	}
}

func TestOwned(t *testing.T) {
	t.Parallel()
	d := parsed(t, []byte(`a = 1 # machineadm
b = 1 # machineadm: changed
c = {x = 1, y."z,".w = 2} # theirs # machineadm: added x, changed y."z\u002C".w, added gone
d = 1 # machineadm.io
e = 1 # machineadm: added
f = 1 # machineadm: removed x
g = {x = 1} # machineadm: added x=1 #
h = "# machineadm"
i = 1 # x # machineadm   
j = 1 # machineadm, once # machineadm: changed
[on.the.way] # machineadm
k = 1 # machineadm
[neither] # machineadm: changed
[[l]] # machineadm
k = 1 # machineadm
`))
	want := []Owned{
		{Path: []string{"a"}},
		{Path: []string{"b"}, Changed: true},
		{Path: []string{"c", "x"}},
		{Path: []string{"c", "y", "z,", "w"}, Changed: true},
		{Path: []string{"i"}},
		{Path: []string{"j"}, Changed: true},
		{Path: []string{"on", "the", "way", "k"}},
	}
	if got := d.Owned(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// What is added and what is owned are the same.
func TestOwnedIsWhatWasSet(t *testing.T) {
	t.Parallel()
	for name, data := range seeds(t) {
		d := parsed(t, data)
		if len(d.Owned()) > 0 {
			t.Fatalf("%s: %v", name, d.Owned())
		}
		for i, place := range append(paths(d), nil) {
			if i > 50 && i%5 > 0 {
				continue
			}
			e := parsed(t, data)
			path := append(place, "new key")
			if err := e.Set(path, wanted(i%5, "v")); err != nil {
				continue
			}
			if got := parsed(t, e.Bytes()).Owned(); !reflect.DeepEqual(got, []Owned{{Path: path}}) {
				t.Fatalf("%s: after Set %q %v is ours:\n%s", name, path, got, e.Bytes())
			}
		}
	}
}
