package form

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestIsHostName(t *testing.T) {
	t.Parallel()
	label := strings.Repeat("a", 63)
	for text, want := range map[string]bool{
		"a": true, "A.b-c.1": true, "192.0.2.1": true, label + ".x": true,
		"": false, ".": false, "a.": false, "a..b": false, "-a": false, "a-": false, "a_b": false, "a b": false, "a\n": false, "é": false,
		label + "a":                          false,
		strings.Repeat(label+".", 4) + "abc": false,
	} {
		assert.Equal(t, want, IsHostName(text), "%q", text)
	}
}

func TestIsPath(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]bool{ // on Linux, on Windows
		"/a": {true, false}, "/a/b c": {true, false}, `C:\a`: {false, true}, `c:\a\b c`: {false, true},
		"": {}, "/": {}, "a": {}, "/a/": {}, "/a//b": {}, "/a/../b": {}, "/./a": {}, "/a\nb": {},
		`C:\`: {}, `C:\a\`: {}, `C:\a\..\b`: {}, `C:\.\a`: {}, `C:/a`: {}, `C:\a:b`: {}, `\a`: {}, "C:\\a\tb": {},
	} {
		assert.Equal(t, want, [2]bool{IsPath(text, false), IsPath(text, true)}, "%q", text)
	}
}
