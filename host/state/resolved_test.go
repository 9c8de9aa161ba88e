package state

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestResolved: what was resolved is readable by its owner alone, replaced as a whole, and gone with the success of a run or with
// the machine.
func TestResolved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s, err := Open(dir, "machine")
	require.NoError(t, err)
	r := s.Resolved()
	one, two := strings.Repeat("0a", 32), strings.Repeat("0b", 32)
	got, err := r.Load(one)
	require.NoError(t, err)
	assert.Nil(t, got)
	large := bytes.Repeat([]byte("x"), 1<<20)
	for key, data := range map[string][]byte{one: []byte("first"), two: large} {
		require.NoError(t, r.Keep(key, data))
		got, err = r.Load(key)
		require.NoError(t, err)
		assert.Equal(t, data, got)
	}
	require.NoError(t, r.Keep(one, []byte{})) // an empty object is not an absent one
	got, err = r.Load(one)
	require.NoError(t, err)
	assert.NotNil(t, got)
	if runtime.GOOS != "windows" {
		for path, mode := range map[string]os.FileMode{"resolved": 0o700 | os.ModeDir, "resolved/" + two: 0o600} {
			info, err := os.Stat(filepath.Join(dir, path))
			require.NoError(t, err)
			assert.Equal(t, mode, info.Mode(), path)
		}
	}
	require.NoError(t, s.KeepPending(Pending{StreamDigest: "g", File: "f", Timeout: 1, Stream: []byte("s")}))
	require.NoError(t, r.Only(nil), "a run that waits may need it")
	require.NoError(t, s.ForgetPending())
	require.NoError(t, r.Only([]string{two, strings.Repeat("0c", 32)}))
	got, err = r.Load(one)
	require.NoError(t, err)
	assert.Nil(t, got)
	got, err = r.Load(two)
	require.NoError(t, err)
	assert.Equal(t, large, got)
	for _, key := range []string{"", "../machine-id", "x"} {
		_, err := r.Load(key)
		assert.ErrorIs(t, err, ErrState)
		assert.ErrorIs(t, r.Keep(key, nil), ErrState)
	}
	clone, err := Open(dir, "another machine")
	require.NoError(t, err)
	got, err = clone.Resolved().Load(two)
	require.NoError(t, err)
	assert.Nil(t, got, "a clone has none of it")
	require.NoError(t, clone.Resolved().Keep(two, large))
	require.NoError(t, clone.Resolved().Forget())
	require.NoError(t, clone.Resolved().Forget())
	require.NoError(t, clone.Resolved().Only(nil))
	assert.NoDirExists(t, filepath.Join(dir, "resolved"))
}
