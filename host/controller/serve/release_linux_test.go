package serve

import (
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRelease: the files of a directory, and nothing else on this machine.
func TestRelease(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "releases")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "v1.0.0"), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "..data"), 0o700))
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("manifest.json", "{}")
	write("v1.0.0/a+b_1~rc.tar", "text")
	write("empty", "")
	write(".hidden", canary)
	write("../secret", canary)
	write("..data/key", "of a volume")
	require.NoError(t, os.Symlink("..data/key", filepath.Join(dir, "key"))) // as a volume of Kubernetes has them
	require.NoError(t, os.Symlink("../secret", filepath.Join(dir, "out")))
	require.NoError(t, os.Symlink(filepath.Join(top, "secret"), filepath.Join(dir, "absolute")))
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(dir, "device")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	e := start(t, func(o *Options) { o.Releases = dir })
	for path, text := range map[string]string{
		"manifest.json": "{}", "v1.0.0/a+b_1~rc.tar": "text", "empty": "", "key": "of a volume",
		"v1.0.0": "404", "v1.0.0/": "404", "": "404", "absent": "404", ".hidden": "404", "..data/key": "404", "out": "404", "absolute": "404",
		"device": "404", "fifo": "404", "manifest.json/x": "404",
	} {
		a := e.do(t, http.MethodGet, "/v1/release/"+path, "", "Authorization", "", "Range", "bytes=1-")
		if text == "404" {
			assert.Equal(t, 404, a.StatusCode, path)
			continue
		}
		assert.Equal(t, 200, a.StatusCode, path)
		assert.Equal(t, text, a.text, path)
		assert.Equal(t, int64(len(text)), a.ContentLength)
	}
	assert.Equal(t, 405, e.do(t, http.MethodPost, "/v1/release/manifest.json", "").StatusCode)
	assert.Empty(t, e.handler.releases.downloads, "none is left")
	assert.Empty(t, e.calls())

	// Another directory in its place is used.
	require.NoError(t, os.Rename(dir, dir+".old"))
	assert.Equal(t, 503, e.do(t, http.MethodGet, "/v1/release/manifest.json", "").StatusCode)
	require.NoError(t, os.Mkdir(dir, 0o700))
	write("manifest.json", "[]")
	assert.Equal(t, "[]", e.do(t, http.MethodGet, "/v1/release/manifest.json", "").text)
}
