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
		"a: b\n---\nc: d\n":                 "f:3:1: is a second document\n  hint: write one mapping",
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
