package document

import (
	"fmt"
	"strings"
	"testing"
)

func TestStrings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                  "map[]",
		"# nothing\n---\n":                  "map[]",
		"Timesync: chronyd\nSysctl: procfs": "map[Sysctl:procfs Timesync:chronyd]",
		"a: 1\nb: [x]\n":                    "f:1:1: a: must be a string\n  hint: put the value in quotes\nf:2:1: b: must be a string",
		"- a\n":                             "f:1:1: must be a mapping of names to strings",
		"a: b\n---\nc: d\n":                 "f:3:1: is a second document\n  hint: write one document",
		"a: *b\n":                           "f:1:4: a: aliases are refused\n  hint: write the value itself; text that starts with * needs quotes",
		"a: b: c\n":                         "f:1:5: is not valid YAML",
		"a\x00":                             "f: is too large or is not UTF-8",
	} {
		got, err := Strings("f", []byte(text))
		if err != nil {
			if got != nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: got %v, want %s", text, err, want)
			}
			continue
		}
		if shown := fmt.Sprint(got); shown != want {
			t.Errorf("%q: got %s, want %s", text, shown, want)
		}
	}
}

func TestSingleValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                           "",
		"# nothing\n":                "",
		"a: {b: [1, 1.50, null]}\n":  `{"a":{"b":[1,1.5,null]}}`,
		`[{"op": "remove"}]`:         `[{"op":"remove"}]`,
		"text":                       `"text"`,
		"a: 1\na: 2\n":               "f:2:1: a: duplicate key",
		"a: &x c4n4ry\nb: *x\n":      "f:1:4: a: anchors are refused",
		"a: 1\n---\nb: 2\n":          "f:3:1: is a second document",
		"a: \"c4n4ry\nb\": c4n4ry: ": "f:2:",
	} {
		got, err := JSON("f", []byte(text))
		shown := string(got)
		if err != nil {
			shown = err.Error()
		}
		if strings.Contains(shown, "c4n4ry") || err == nil && shown != want || err != nil && !strings.Contains(shown, want) {
			t.Errorf("%q: got %s, want %s", text, shown, want)
		}
	}
}
