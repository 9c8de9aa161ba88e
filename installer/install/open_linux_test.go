package install

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMakeOneFollowsNoLink: between the check of a path and the making of its directories another user can put a link into a
// shared directory.
func TestMakeOneFollowsNoLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	private, link := filepath.Join(dir, "private"), filepath.Join(dir, "link")
	require.NoError(t, os.Mkdir(private, 0o700))
	require.NoError(t, os.Symlink(private, link))
	opened := &target{}
	require.NoError(t, opened.makeOne(link))
	info, err := os.Stat(private)
	require.NoError(t, err)
	assert.Equal(t, os.ModeDir|0o700, info.Mode())
	assert.Empty(t, opened.made)
}
