package netjoin

import (
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows/registry"
)

// TestEncode: a secret has one buffer, which its caller can clear.
func TestEncode(t *testing.T) {
	for _, secret := range []string{"", "canary", "Pässwörd-日本-😀"} {
		got := encode([]byte(secret))
		assert.Equal(t, append(utf16.Encode([]rune(secret)), 0), got)
		assert.LessOrEqual(t, len(got), len(secret)+1)
		assert.Equal(t, len(secret)+1, cap(got[:1:cap(got)]), "it never grew")
	}
}

// TestMark: the mark of this boot is read back.
func TestMark(t *testing.T) {
	t.Cleanup(func() { assert.NoError(t, registry.DeleteKey(registry.LOCAL_MACHINE, markKey)) })
	for _, want := range []Mark{Begun, Provisioned} {
		require.NoError(t, Windows{}.Mark(want))
		got, err := text(markKey, markValue)
		require.NoError(t, err)
		assert.Equal(t, string(want), got)
	}
	name, err := computerName()
	require.NoError(t, err)
	assert.NotEmpty(t, name)
}
