package tomledit

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// We read what go-toml reads, and refuse what it refuses.
func FuzzParse(f *testing.F) {
	for _, data := range seeds(f) {
		f.Add(data)
	}
	for _, text := range []string{
		"a=1\na=2", "a.b=1\n[a]", "[a]\n[a]", "[a.b]\n[a]\nb.c=1", "a={}\n[a.b]", "[[a]]\n[a]", "a=[{}]\n[[a]]", "a={b=1,b=2}",
		"a=[{b=1,b=2}]", "a=0x8000000000000000", "a=2026-02-30", "[[a]]\nb=1\n[[a]]\nb=1\n[a.c]\n[[a.d]]", "a.b=1\n[a.c]", "\xef\xbb\xbf",
		"a=\"\\ud800\"", "a=1e999", "a=\"\x00\"", "a='\xff'", "a=1\r", "a=\"\"\"\"\"\"\"\"",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var table map[string]any
		reference := toml.Unmarshal(data, &table)
		d, err := Parse(data)
		var fault *Error
		if err != nil {
			if !errors.As(err, &fault) || fault.Line < 1 || fault.Column < 1 || fault.Line > 1+bytes.Count(data, []byte("\n")) {
				t.Fatalf("%#v", err)
			}
			if reference == nil && !strings.Contains(fault.Message, "keys deep") {
				t.Fatalf("go-toml reads what is refused with %v", err)
			}
			return
		}
		if reference != nil {
			t.Fatalf("go-toml refuses it: %v", reference)
		}
		if got := must(d.Get()); !same(got, generic(table)) && !same(got, table) && len(table) > 0 {
			t.Fatalf("got %v\nwant %v", got, table)
		}
		if !bytes.Equal(d.Bytes(), data) {
			t.Fatal("the text changed")
		}
		for _, path := range paths(d) {
			value, ok := d.Get(path...)
			if keys := d.Keys(path...); !ok || !d.Has(path...) || !slices.Equal(keys, slices.Compact(slices.Clone(keys))) {
				t.Fatalf("%q: %v %v", path, value, keys)
			}
		}
	})
}

// pick chooses something that is in the document, or a key below it.
func pick(d *Document, choice int, more string) []string {
	all := append(paths(d), nil)
	path := slices.Clone(all[choice%len(all)])
	if more != "" || len(path) == 0 {
		path = append(path, strings.Split(strings.ToValidUTF8(more, "?"), "/")...)
	}
	return path
}

// Whatever is set or deleted, in whatever document, everything that Set and Delete promise holds.
func FuzzSet(f *testing.F) {
	number := uint16(0)
	for _, data := range seeds(f) {
		f.Add(data, uint16(1), "", uint16(2), "text")
		f.Add(data, number, "new", number, "text")
		f.Add(data, number*7, "new/io.x.v1/#", number, "it's")
		number++
	}
	f.Fuzz(func(t *testing.T, data []byte, choice uint16, more string, number uint16, text string) {
		d, err := Parse(data)
		if err != nil || len(data) > 1<<14 {
			return
		}
		path := pick(d, int(choice), more)
		checkSet(t, data, path, wanted(int(number), text))
		checkDelete(t, data, path)
		if list, ok := must(d.Get(path...)).([]any); ok {
			checkSet(t, data, path, shuffled(list, int(number), text))
		}
	})
}

// shuffled is a list with some values more, less or other.
func shuffled(list []any, number int, text string) []any {
	var out []any
	for i, value := range list {
		if _, err := normal(value, 0); err != nil {
			continue
		}
		switch (number >> (i % 8 * 2)) & 3 {
		case 0:
		case 1:
			out = append(out, wanted(i, text), value)
		default:
			out = append(out, value)
		}
	}
	if number&512 != 0 {
		out = append(out, wanted(number, text))
	}
	return out
}

// Many edits in a row: what was promised for one holds for each.
func FuzzEdits(f *testing.F) {
	for _, data := range seeds(f) {
		f.Add(data, []byte("\x00\x00\x01\x01\x02\x07\x02\x03\x00\x08\x04\x02\x11\x02\x00\x13\x00\x04"))
		f.Add(data, []byte("\x08\x00\x01\x04\x01\x02\x05\x10\x03\x20\x30\x01\x07\x31\x02\x11\x30\x00\x11\x03\x00"))
	}
	names := []string{"", "k", "k/l", "io.x.v1", "a b/#,", "m/", "é", "k/l/m"}
	f.Fuzz(func(t *testing.T, data, script []byte) {
		if _, err := Parse(data); err != nil || len(data) > 1<<13 || bytes.Contains(data, []byte(signature)) {
			return
		}
		for steps := 0; len(script) >= 3 && steps < 16; steps++ {
			path := pick(parsed(t, data), int(script[1]), names[int(script[2])%len(names)])
			if script[0]&16 != 0 {
				data = checkDelete(t, data, path)
			} else {
				data = checkSet(t, data, path, wanted(int(script[0]), "v"))
			}
			if stale(parsed(t, data)) {
				t.Fatalf("a mark is left that nothing answers to:\n%s", data)
			}
			script = script[3:]
		}
	})
}
