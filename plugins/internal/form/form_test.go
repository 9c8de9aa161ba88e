package form

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

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
