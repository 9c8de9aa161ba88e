package document

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPathVectors: testdata/paths.jsonl is for writers and readers of field paths in any language.
func TestPathVectors(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/paths.jsonl")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	lines := bufio.NewScanner(file)
	count := 0
	for ; lines.Scan(); count++ {
		var v struct {
			Steps           []any
			Path            *string
			Read, Malformed string
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v), lines.Text())
		if v.Malformed != "" {
			_, ok := steps(v.Malformed)
			assert.False(t, ok, v.Malformed)
			continue
		}
		text := v.Read
		if v.Path != nil {
			text = *v.Path
			var p Path
			for _, s := range v.Steps {
				switch s := s.(type) {
				case string:
					p = p.Field(s)
				case float64:
					p = p.Index(int(s))
				}
			}
			assert.Equal(t, text, string(p))
		}
		got, ok := steps(text)
		assert.True(t, ok, text)
		assert.Equal(t, append([]any{}, v.Steps...), got, text)
	}
	require.NoError(t, lines.Err())
	assert.Greater(t, count, 20)
}

// steps reads a whole path, numbers as JSON has them.
func steps(path string) ([]any, bool) {
	out := []any{}
	for path != "" {
		s, rest, ok := nextStep(path)
		if !ok {
			return nil, false
		}
		if s.named {
			out = append(out, s.name)
		} else {
			out = append(out, float64(s.index))
		}
		path = rest
	}
	return out, true
}

// FuzzPath: a path that is read and written again is canonical and means the same.
func FuzzPath(f *testing.F) {
	f.Add(`spec.parameters["net.ipv4.ip_forward"][0]["a\n\"]"].b`)
	f.Add("\xd00")
	f.Add("a[\"\xd0\"]")
	f.Fuzz(func(t *testing.T, text string) {
		var p Path
		for rest := text; rest != ""; {
			s, after, ok := nextStep(rest)
			if !ok {
				return
			}
			p, rest = s.in(p), after
		}
		want, _ := steps(text)
		got, ok := steps(string(p))
		require.True(t, ok, "%q", p)
		assert.Equal(t, want, got, "%q", text)
	})
}
