package rooted

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyphar/filepath-securejoin/pathrs-lite"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestLookupIsTheLibrarys: the short way leads to the same file as the library's, or to the same refusal.
func TestLookupIsTheLibrarys(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"etc/conf.d", "run", "var"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil { //nolint:gosec // like any image
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "etc/file"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{
		"var/run": "/run", "etc/relative": "file", "etc/absolute": "/etc/file", "etc/out": "../../../../etc/file",
		"etc/nowhere": "/gone", "loop": "/loop", "etc/up": "..", "magic": "/proc/self/fd/0", "long": strings.Repeat("x", 300),
	} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	refused := 0
	for _, name := range []string{
		"/", "/etc", "/etc/", "/etc/file", "/etc/file/", "/etc/file/x", "/etc/relative", "/etc/absolute", "/etc/out", "/etc/nowhere",
		"/etc/up/etc/file", "/var/run", "/var/run/x", "/loop", "/magic", "/long", "/gone", "/gone/x", "//etc//file", "/./etc/./file",
		"/" + strings.Repeat("x", 300), "/" + strings.Repeat("x/", 3000), "",
	} {
		short, err := f.Lookup(name)
		long, want := pathrs.OpenatInRoot(f.dir, name)
		var errno unix.Errno
		if (err == nil) != (want == nil) || errors.As(want, &errno) && !errors.Is(err, errno) {
			t.Errorf("%.40q: %v, the library says %v", name, err, want)
		}
		if err != nil || want != nil {
			refused++
			continue
		}
		if same, err := SameFile(int(short.Fd()), int(long.Fd())); !same || err != nil {
			t.Errorf("%q is %q, for the library %q (%v)", name, short.Name(), long.Name(), err)
		}
		if err := errors.Join(short.Close(), long.Close()); err != nil {
			t.Error(err)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

func TestOpenFile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("outside"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(root, "etc"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "etc/file"), []byte("content"), 0o600))
	require.NoError(t, os.Symlink("/etc/file", filepath.Join(root, "link")))
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "out")))
	require.NoError(t, unix.Mkfifo(filepath.Join(root, "pipe"), 0o600))
	r, err := OpenRoot(root)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	for name, test := range map[string]struct {
		limit int64
		want  string
		err   error
	}{
		"/etc/file": {7, "content", nil},
		"/link":     {7, "content", nil},
		"/out":      {7, "", unix.ENOENT},
		"/pipe":     {7, "", ErrNotRegular},
		"/etc":      {7, "", ErrNotRegular},
		"/gone":     {7, "", unix.ENOENT},
	} {
		data, err := r.ReadFile(name, test.limit)
		require.ErrorIs(t, err, test.err, name)
		assert.Equal(t, test.want, string(data), name)
	}
	_, err = r.ReadFile("/etc/file", 6)
	assert.ErrorContains(t, err, "larger than 6 bytes")
}
