package resume

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// FuzzUnitText: no word of the command line ends its line or begins another section of the unit.
func FuzzUnitText(f *testing.F) {
	for _, seed := range []string{"", "/var/lib/machineadm", "a b", `a"b\`, "%h$HOME", "a\n[Service]\nExecStart=/bin/sh", ";", "'", "\t", "\r", "a\\\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if strings.ContainsRune(word, 0) {
			return // no argument and no path holds one
		}
		want := strings.Count(unitText([]string{"/p", "x"}, "/s", "/c"), "\n")
		got := unitText([]string{"/p", word}, word, word+"/c")
		assert.Equal(t, want, strings.Count(got, "\n"), got)
		assert.Equal(t, want, strings.Count(strings.ReplaceAll(got, "\r", "\n"), "\n"), got)
		for line := range strings.Lines(got) {
			if arguments, ok := strings.CutPrefix(line, "ExecStart=/p "); ok {
				assert.Equal(t, word, plainWord(strings.TrimSuffix(arguments, "\n")))
			}
		}
	})
}

// plainWord reads a word of a unit as systemd.syntax(7) has it.
func plainWord(text string) string {
	if strings.HasPrefix(text, `"`) {
		text = strings.TrimSuffix(strings.TrimPrefix(text, `"`), `"`)
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n", `\r`, "\r", `\t`, "\t", "%%", "%", "$$", "$").Replace(text)
}
