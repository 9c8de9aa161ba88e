package document

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCheckMappings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		line    int
		message string
	}{
		"a: &x {b: c}\nd: *x\n":   {},
		"a: !!str 1\n---\n1: b\n": {},
		"a: b\na: c\n":            {2, "has a key twice in a mapping"},
		"a: {b: c, b: d}\n":       {1, "has a key twice in a mapping"},
		"a: b: c\n":               {1, "is not YAML"},
		"a: 1\n\tb: 2\n":          {2, "is not YAML"},
		"- a\n":                   {0, "is no mapping of keys to values in YAML"},
		"a: b\n---\nc\n":          {0, "is no mapping of keys to values in YAML"},
		"":                        {0, "is no mapping of keys to values in YAML"},
	} {
		line, err := CheckMappings([]byte(text))
		assert.Equal(t, want.line, line, text)
		if want.message == "" {
			assert.NoError(t, err, text)
		} else {
			assert.EqualError(t, err, want.message, text)
		}
	}
}

// TestCheckMappingsBomb: aliases of aliases would take all memory.
func TestCheckMappingsBomb(t *testing.T) {
	t.Parallel()
	text := "k0: &k0 [x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		text += fmt.Sprintf("k%d: &k%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*k%d,", i-1), 9), ","))
	}
	for _, hostile := range []string{text, "a: " + strings.Repeat("[", 500_000), strings.Repeat("? ", 250_000)} {
		_, err := CheckMappings([]byte(hostile))
		assert.EqualError(t, err, "is not YAML")
	}
}

func FuzzCheckMappings(f *testing.F) {
	f.Add("a: &x {b: c}\nd: *x\n")
	f.Add("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n")
	f.Fuzz(func(t *testing.T, text string) {
		line, err := CheckMappings([]byte(text))
		assert.True(t, err != nil || line == 0)
		assert.LessOrEqual(t, line, strings.Count(text, "")+1)
	})
}
