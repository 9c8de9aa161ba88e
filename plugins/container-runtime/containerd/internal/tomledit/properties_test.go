package tomledit

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// checkSet sets a value and holds the result against everything that Set promises. It returns the document after it.
func checkSet(t *testing.T, before []byte, path []string, value any) []byte {
	t.Helper()
	d := parsed(t, before)
	old := parsed(t, before)
	err := d.Set(path, value)
	after := d.Bytes()
	if err != nil {
		checkRefusal(t, err, before, after)
		return before
	}
	want := decoded(t, before)
	modelSet(want, path, value)
	if now := decoded(t, after); !same(now, want) {
		t.Fatalf("Set %q %#v\nbefore:\n%s\nafter:\n%s\nit says %v\nwanted %v", path, value, before, after, now, want)
	}
	got, ok := d.Get(path...)
	if !ok || !same(got, generic(value)) {
		t.Fatalf("Get %q gives %#v, %v after Set %#v", path, got, ok, value)
	}
	if fresh := parsed(t, after); !same(must(fresh.Get()), must(d.Get())) {
		t.Fatal("the document does not know its own text")
	}
	checkBytes(t, old, path, value, after)
	for _, again := range []*Document{d, parsed(t, after)} {
		if err := again.Set(path, value); err != nil || !bytes.Equal(again.Bytes(), after) {
			t.Fatalf("Set %q %#v a second time: %v\nfirst:\n%s\nsecond:\n%s", path, value, err, after, again.Bytes())
		}
	}
	// Text of other authors with our marks may have a form that we never write: an empty section, a mark without a key.
	if old.Has(path...) || stale(old) {
		return after
	}
	for _, undone := range []*Document{d, parsed(t, after)} {
		if err := undone.Delete(path...); err != nil || !bytes.Equal(undone.Bytes(), before) {
			t.Fatalf("Set and Delete %q %#v: %v\nbefore:\n%q\nset:\n%q\ndeleted:\n%q", path, value, err, before, after, undone.Bytes())
		}
	}
	return after
}

func must(value any, _ bool) any { return value }

func checkRefusal(t *testing.T, err error, before, after []byte) {
	t.Helper()
	var fault *Error
	if !errors.As(err, &fault) || fault.Message == "" {
		t.Fatalf("%T %v", err, err)
	}
	if !bytes.Equal(before, after) {
		t.Fatalf("refused (%v) and changed:\n%s\nto\n%s", err, before, after)
	}
}

// checkBytes holds that nothing is removed but a replaced value, and that nothing moves.
func checkBytes(t *testing.T, old *Document, path []string, value any, after []byte) {
	t.Helper()
	n := old.lookup(path)
	switch {
	case n == nil:
		if !keeps(old.data, after) {
			t.Fatalf("Set of a new key %q touched other bytes\nbefore:\n%s\nafter:\n%s", path, old.data, after)
		}
	case n.form == leaf && equal(n.content, generic(value)):
		if !bytes.Equal(old.data, after) {
			t.Fatalf("Set %q to what it is changed\n%s\nto\n%s", path, old.data, after)
		}
	case n.form == leaf:
		s := &old.statements[n.home]
		m := old.mark(s)
		front, between, back := old.data[:n.value.from], old.data[n.value.to:m.place.from], old.data[m.place.to:]
		rest, ok := bytes.CutPrefix(after, front)
		rest, okBack := bytes.CutSuffix(rest, back)
		if !ok || !okBack || !bytes.Contains(rest, between) {
			t.Fatalf("Set %q touched more than the value\nbefore:\n%s\nafter:\n%s", path, old.data, after)
		}
	default:
		t.Fatalf("the table %q was replaced by %#v", path, value)
	}
}

// stale says whether a document has marks that neither Set nor Delete leaves.
func stale(d *Document) bool {
	for i := range d.statements {
		s := &d.statements[i]
		m := d.mark(s)
		empty := s.header && (i+1 == len(d.statements) || d.statements[i+1].header)
		if m.whole && empty || string(d.data[m.place.from:m.place.to]) != m.text() {
			return true
		}
		for _, it := range m.items {
			if n := d.lookup(slices.Concat(s.node.path(nil), it.path)); n == nil || !it.changed && n == s.node {
				return true
			}
		}
	}
	return false
}

func checkDelete(t *testing.T, before []byte, path []string) []byte {
	t.Helper()
	d := parsed(t, before)
	err := d.Delete(path...)
	after := d.Bytes()
	if err != nil {
		checkRefusal(t, err, before, after)
		return before
	}
	want, now := decoded(t, before), decoded(t, after)
	modelDelete(want, now, path)
	if !same(now, want) || d.Has(path...) {
		t.Fatalf("Delete %q\nbefore:\n%s\nafter:\n%s\nit says %v\nwanted %v", path, before, after, now, want)
	}
	if !isPartOf(after, before) {
		t.Fatalf("Delete %q added something\nbefore:\n%s\nafter:\n%s", path, before, after)
	}
	for _, o := range d.Owned() {
		if len(o.Path) >= len(path) && slices.Equal(o.Path[:len(path)], path) {
			t.Fatalf("%q is gone and still ours", o.Path)
		}
	}
	if err := d.Delete(path...); err != nil || !bytes.Equal(d.Bytes(), after) {
		t.Fatalf("Delete %q a second time: %v", path, err)
	}
	return after
}

// wanted is a value of every sort; the same number gives the same one.
func wanted(number int, text string) any {
	text = strings.ToValidUTF8(text, "?")
	values := []any{
		text, true, int64(number), float64(number) / 4,
		[]string{"a", text},
		[]any{},
		[]any{int64(1), "two", []any{false}},
		[]any{map[string]any{}},
		[]any{map[string]any{"k": text, "more": map[string]any{"list": []string{text}}, "sub": map[string]any{}}},
		"it's \"quoted\"\n\ttwice\x7f\\", int64(-1 << 63), 1e300, "",
	}
	return values[number%len(values)]
}

// Everything in every seed, and next to it, set to a value of every sort, and deleted.
func TestEveryPlaceOfEverySeed(t *testing.T) {
	t.Parallel()
	for name, data := range seeds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			places := [][]string{nil}
			places = append(places, paths(parsed(t, data))...)
			for i, place := range places {
				// What differs between the variants of a long document is not where in it an edit is.
				if i > 50 && i%5 > 0 && strings.Contains(name, " ") {
					continue
				}
				if len(place) > 0 {
					checkSet(t, data, place, wanted(i, "new"))
					checkSet(t, data, place, wanted(i+5, "new"))
					checkDelete(t, data, place)
				}
				checkSet(t, data, slices.Concat(place, []string{"new"}), wanted(i, "v"))
				checkSet(t, data, slices.Concat(place, []string{"new.dot", "b"}), wanted(i+3, "v"))
				checkSet(t, data, slices.Concat(place, []string{"x", "", "#,\""}), wanted(i+7, "v"))
			}
		})
	}
}
