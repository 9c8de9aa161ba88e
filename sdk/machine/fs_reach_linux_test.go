package machine_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// linked is an image with links of every kind, of which none leads out of it.
func linked(t *testing.T, root string) {
	t.Helper()
	for _, dir := range []string{"etc/machineadm", "run", "usr/bin", "usr/lib/systemd", "var/lib", "srv", "data/kubelet"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755)) //nolint:gosec // like any image
	}
	for name, target := range map[string]string{
		"bin": "usr/bin", "lib": "/usr/lib", "var/run": "/run", "srv/relative": "../etc/machineadm", "srv/absolute": "/etc/machineadm",
		"srv/nothing": "/run/machineadm", "srv/file": "/usr/bin/new", "srv/chain": "absolute", "srv/outside": "../../../../../usr/bin",
		"srv/up": "/lib/systemd/..", "srv/loop": "loop", "var/lib/kubelet": "/data/kubelet", "srv/slash": "/usr/bin/",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(root, name)))
	}
}

// TestDestination: a write creates its file exactly where Destination says. The table is compared with what writes do.
func TestDestination(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"/etc/x": "/etc/x", "/etc/none/x": "/etc/none/x", "/bin/x": "/usr/bin/x", "/lib/systemd/x": "/usr/lib/systemd/x",
		"/var/run/x": "/run/x", "/var/run/none/x": "/run/none/x", "/srv/relative/x": "/etc/machineadm/x", "/srv/absolute/x": "/etc/machineadm/x",
		"/srv/file": "/usr/bin/new", "/srv/chain/x": "/etc/machineadm/x", "/srv/outside/x": "/usr/bin/x", "/srv/up/x": "/usr/lib/x",
		"/var/lib/kubelet/x": "/data/kubelet/x", "/srv/slash/x": "/usr/bin/x", "/srv//./relative/x": "/etc/machineadm/x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := machinetest.New(t)
			linked(t, f.Root)
			got, err := f.Machine.FS.Destination(name)
			require.NoError(t, err)
			assert.Equal(t, want, got)
			require.NoError(t, f.Machine.FS.WriteFile(name, []byte("x"), 0o600))
			info, err := os.Lstat(filepath.Join(f.Root, want))
			require.NoError(t, err, "the write went elsewhere")
			assert.True(t, info.Mode().IsRegular())
		})
	}
}

func TestDestinationRefuses(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	linked(t, f.Root)
	for name, want := range map[string]error{"/srv/loop/x": unix.ELOOP, "/srv/../etc": fs.ErrInvalid, "etc": fs.ErrInvalid} {
		_, err := f.Machine.FS.Destination(name)
		require.ErrorIs(t, err, want, name)
		_, err = f.Machine.FS.Reaches(name, "/usr")
		require.ErrorIs(t, err, want, name)
	}
	got, err := f.Machine.FS.Destination("/srv/nothing/x")
	require.NoError(t, err)
	assert.Equal(t, "/run/machineadm/x", got, "a link that leads to nothing yet")
}

func TestReaches(t *testing.T) {
	t.Parallel()
	directories := []string{"/usr", "/etc/machineadm", "/run/machineadm", "/var/lib/kubelet"}
	f := machinetest.New(t)
	linked(t, f.Root)
	for name, want := range map[string]string{
		"/usr": "/usr", "/usr/bin/x": "/usr", "/usrx": "", "/bin/x": "/usr", "/lib/systemd/system/x": "/usr", "/srv/file": "/usr",
		"/etc/machineadm/x": "/etc/machineadm", "/etc/machineadm2": "", "/srv/chain/deep/x": "/etc/machineadm", "/srv/relative/x": "/etc/machineadm",
		"/var/run/machineadm/x": "/run/machineadm", "/srv/nothing/x": "/run/machineadm", "/var/run/x": "",
		"/data/kubelet/x": "/var/lib/kubelet", "/var/lib/kubelet/x": "/var/lib/kubelet", "/srv/up/x": "/usr", "/etc/x": "",
	} {
		got, err := f.Machine.FS.Reaches(name, directories...)
		require.NoError(t, err, name)
		assert.Equal(t, want, got, name)
	}
}

// TestReachesThroughMounts: a bind mount is the directory that it shows.
func TestReachesThroughMounts(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	f := machinetest.New(t)
	linked(t, f.Root)
	at := filepath.Join(f.Root, "srv", "bound")
	require.NoError(t, os.Mkdir(at, 0o755)) //nolint:gosec // like any image
	if err := unix.Mount(filepath.Join(f.Root, "usr"), at, "", unix.MS_BIND, ""); err != nil {
		needs.Missing(t, "needs mount(2): "+err.Error())
	}
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(at, unix.MNT_DETACH)) })
	for _, name := range []string{"/srv/bound/x", "/srv/bound/bin/x", "/srv/bound/" + strings.Repeat("none/", 3) + "x"} {
		got, err := f.Machine.FS.Reaches(name, "/usr")
		require.NoError(t, err)
		assert.Equal(t, "/usr", got, name)
	}
}
