package visible_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/internal/visible"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain ü 漢 \\ \"":      `"plain ü 漢 \\ \""`,
		"\x1b[31m\a\x7f\u0085": `"\u001b[31m\u0007\u007f\u0085"`,
		"a\u202eb\u2066c":      `"a\u202eb\u2066c"`,
		"\u200b\u3164\ufeff":   `"\u200b\u3164\ufeff"`,
		"\U000e0041":           `"\udb40\udc41"`,
		"a\nb\tc":              `"a\nb\tc"`,
	} {
		encoded, err := json.Marshal(text)
		require.NoError(t, err)
		got := visible.JSON(encoded)
		assert.Equal(t, want, string(got))
		var back string
		require.NoError(t, json.Unmarshal(got, &back))
		assert.Equal(t, text, back)
	}
	assert.Equal(t, "{\n  \"a\": 1\n}\n", string(visible.JSON([]byte("{\n  \"a\": 1\n}\n"))))
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("closed") }

func TestWriter(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	n, err := visible.Writer{Out: &out}.Write([]byte("a\u202eb\n"))
	assert.NoError(t, err)
	assert.Equal(t, len("a\u202eb\n"), n)
	assert.Equal(t, `a\u202eb`+"\n", out.String())
	_, err = visible.Writer{Out: closed{}}.Write([]byte("x"))
	assert.Error(t, err)
}

func FuzzJSON(f *testing.F) {
	f.Add("a\u202e\x1b\n")
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		encoded, err := json.Marshal(text)
		require.NoError(t, err)
		shown := visible.JSON(encoded)
		assert.False(t, strings.ContainsFunc(string(shown), visible.Unsafe))
		var back string
		require.NoError(t, json.Unmarshal(shown, &back))
		assert.Equal(t, text, back)
	})
}
