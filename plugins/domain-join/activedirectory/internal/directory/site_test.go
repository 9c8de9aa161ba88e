package directory

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// reply returns the reply of a Samba 4.17 controller (Debian 12) to the search of Session.site, for a client of its own site.
func reply(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/netlogon.bin")
	require.NoError(t, err)
	return data
}

func TestParseSite(t *testing.T) {
	t.Parallel()
	name, near, err := parseSite(reply(t))
	require.NoError(t, err)
	require.Equal(t, "Default-First-Site-Name", name)
	require.True(t, near)
	distant := reply(t)
	distant[4] &^= 0x80
	_, near, err = parseSite(distant)
	require.NoError(t, err)
	require.False(t, near)
	for size := range 91 { // the names end there
		_, _, err := parseSite(reply(t)[:size])
		require.Error(t, err, "%d bytes", size)
	}
	_, _, err = parseSite(append([]byte{25}, reply(t)[1:]...)) // the operation of an account that is unknown
	require.ErrorContains(t, err, "unreadable")
}

func TestCompressed(t *testing.T) {
	t.Parallel()
	label := func(text string) string { return string(rune(len(text))) + text }
	long := label(strings.Repeat("x", 63))
	for name, tt := range map[string]struct {
		message string
		at      int
		want    string
		end     int
		err     string
	}{
		"root":               {message: "\x00", end: 1},
		"a label":            {message: "..\x03abc\x00..", at: 2, want: "abc", end: 7},
		"labels":             {message: "\x03abc\x01d\x00", want: "abc.d", end: 7},
		"a pointer":          {message: "\x03abc\x00\xc0\x00", at: 5, want: "abc", end: 7},
		"behind a label":     {message: "\x03abc\x00\x01d\xc0\x00", at: 5, want: "d.abc", end: 9},
		"two pointers":       {message: "\x01a\x00\x01b\xc0\x00\x01c\xc0\x03", at: 7, want: "c.b.a", end: 11},
		"a long label":       {message: long + "\x00", want: long[1:], end: 65},
		"no bytes":           {err: "does not end"},
		"no end":             {message: "\x03abc", err: "does not end"},
		"a label cut":        {message: "\x03ab", err: "label"},
		"a pointer cut":      {message: "\x00\xc0", at: 1, err: "label"},
		"out of the message": {message: "\x00\xc0\x09", at: 1, err: "does not end"},
		"itself":             {message: "\x01a\xc0\x00", err: "does not end"},
		"127 labels":         {message: strings.Repeat("\x01a", 127) + "\x00", want: strings.Repeat("a.", 126) + "a", end: 255},
		"128 labels":         {message: strings.Repeat("\x01a", 128) + "\x00", err: "does not end"},
		"each other":         {message: "\xc0\x02\xc0\x00", at: 2, err: "does not end"},
		"reserved, 0x40":     {message: "\x40" + strings.Repeat("x", 64) + "\x00", err: "label"},
		"reserved, 0x80":     {message: "\x80" + strings.Repeat("x", 128) + "\x00", err: "label"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, end, err := compressed([]byte(tt.message), tt.at)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.end, end)
		})
	}
}

// FuzzParseSite: a name is bounded, whatever its pointers are.
func FuzzParseSite(f *testing.F) {
	f.Add(reply(f))
	f.Add(slices.Concat(reply(f)[:24], []byte("\x01a\xc0\x18\xc0\x18\xc0\x18\xc0\x18\xc0\x18\xc0\x18\xc0\x18\xc0\x18")))
	f.Fuzz(func(t *testing.T, data []byte) {
		name, _, err := parseSite(data)
		if err == nil {
			require.Less(t, len(name), 128*64)
		}
	})
}
