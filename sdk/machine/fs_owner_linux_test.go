package machine_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/sdk/machine"
)

func TestLookupOwner(t *testing.T) {
	t.Parallel()
	files, _ := openFS(t)
	_, _, err := files.LookupOwner("chrony", "")
	require.ErrorIs(t, err, fs.ErrNotExist, "there is no /etc/passwd")
	must(t,
		files.WriteFile("/etc/passwd", []byte("root:x:0:0::/root:/bin/sh\n#chrony:x:1:1::/:/\nshort:x:1\nodd:x:one:1::/:/\n"+
			"all:x:4294967295:1::/:/\nchrony:x:112:113::/:/\nchrony:x:1:1::/:/\n"), 0o644),
		files.WriteFile("/etc/group", []byte("root:x:0:\nadm:x:4:joe,ann"), 0o644),
	)
	for _, c := range []struct {
		user, group string
		uid, gid    int
		fails       string
	}{
		{"chrony", "", 112, 113, ""},
		{"chrony", "adm", 112, 4, ""},
		{"", "adm", -1, 4, ""},
		{"", "", -1, -1, ""},
		{"joe", "", -1, -1, `no entry "joe": file does not exist`},
		{"chrony", "joe", -1, -1, `no entry "joe": file does not exist`},
		{"short", "", -1, -1, `no entry "short"`},
		{"odd", "", -1, -1, `the entry "odd" has no number`},
		{"all", "", -1, -1, `the entry "all" has no number`},
	} {
		uid, gid, err := files.LookupOwner(c.user, c.group)
		assert.Equal(t, []int{c.uid, c.gid}, []int{uid, gid}, "%s:%s", c.user, c.group)
		if c.fails == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, c.fails)
		}
	}
}

func TestChmodAndChown(t *testing.T) {
	t.Parallel()
	files, root := openFS(t)
	must(t, files.WriteFile("/d/file", nil, 0o600), files.Symlink("file", "/d/link"), files.MkdirAll("/open", 0o755),
		files.WriteFile("/open/file", nil, 0o600), unix.Mkfifo(filepath.Join(root, "d", "fifo"), 0o600))
	for name, mode := range map[string]fs.FileMode{"/d/file": 0o640, "/d": 0o750 | fs.ModeSetgid} {
		require.NoError(t, files.Chmod(name, mode))
		info, err := files.Stat(name)
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode&^fs.ModeDir)
		require.NoError(t, files.Chown(name, os.Geteuid(), os.Getegid()))
		require.NoError(t, files.Chown(name, -1, -1))
	}
	if os.Geteuid() == 0 {
		require.NoError(t, files.Chown("/d/file", 12, 34))
		info, err := files.Stat("/d/file")
		require.NoError(t, err)
		assert.Equal(t, []int{12, 34}, []int{info.UID, info.GID})
	}
	must(t, os.Chmod(filepath.Join(root, "open"), 0o777))
	for name, want := range map[string]error{
		"/d/link": machine.ErrNotRegular, "/d/fifo": machine.ErrNotRegular, "/d/none": fs.ErrNotExist,
		"/none/file": fs.ErrNotExist, "/open/file": machine.ErrUnsafe, "/": fs.ErrInvalid, "d": fs.ErrInvalid,
	} {
		require.ErrorIs(t, files.Chmod(name, 0o644), want, name)
		require.ErrorIs(t, files.Chown(name, -1, -1), want, name)
	}
}
