package rooted_test

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/rooted"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("outside"), 0o600))
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "usr/lib"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "usr/lib/file"), []byte("inside"), 0o600))
	for name, target := range map[string]string{
		"absolute": "/usr/lib/file", "relative": "usr/lib/file", "above": "../../../../../usr/lib/file",
		"lib": "/usr/lib", "out": outside, "dangling": "/missing", "circle": "circle", "dir": "usr",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(root, name)))
	}
	for path, want := range map[string]error{
		"/usr/lib/file": nil, "/absolute": nil, "/relative": nil, "/above": nil, "/lib/file": nil,
		"/out": fs.ErrNotExist, "/dangling": fs.ErrNotExist, "/missing": fs.ErrNotExist, "/usr/lib/file/x": unix.ENOTDIR,
		"/circle": unix.ELOOP, "/dir": rooted.ErrNotRegular, "/": rooted.ErrNotRegular,
	} {
		file, err := rooted.Open(root, path)
		if want != nil {
			assert.ErrorIs(t, err, want, path)
			continue
		}
		if assert.NoError(t, err, path) {
			content, err := io.ReadAll(file)
			assert.NoError(t, err)
			assert.Equal(t, "inside", string(content), path)
			assert.NoError(t, file.Close())
		}
	}
}

// TestOpenOpensNothingElse watches the nodes: a reference (O_PATH) is no open.
func TestOpenOpensNothingElse(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	fifo := filepath.Join(root, "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, unix.Close(watch)) })
	_, err = unix.InotifyAddWatch(watch, fifo, unix.IN_OPEN)
	require.NoError(t, err)
	_, err = rooted.Open(root, "/fifo")
	require.ErrorIs(t, err, rooted.ErrNotRegular)
	_, err = unix.Read(watch, make([]byte, 4096))
	assert.ErrorIs(t, err, unix.EAGAIN, "the FIFO was opened")
}
