package machine_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// withReadOnly runs fn with a read-only directory.
func withReadOnly(t *testing.T, dir string, fn func() error) {
	t.Helper()
	require.Root(t)
	onOwnThread(t, unix.CLONE_NEWNS, func() error {
		if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
			return err
		}
		return fn()
	})
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	root := machinetest.Root(t)
	must(t, os.WriteFile(filepath.Join(root, "f"), []byte("old"), 0o644))
	withReadOnly(t, root, func() error {
		files, err := machine.OpenFS(root)
		if err != nil {
			return err
		}
		for name, err := range map[string]error{
			"/f": files.WriteFile("/f", []byte("new"), 0o644), "/d/f": files.WriteFile("/d/f", nil, 0o644),
			"/d": files.MkdirAll("/d", 0o755), "/l": files.Symlink("x", "/l"), "/f ": files.Remove("/f"),
		} {
			if !errors.Is(err, unix.EROFS) || strings.Count(err.Error(), root+strings.TrimSpace(name)) != 1 {
				t.Errorf("%s: error %v, want EROFS and the path, once", name, err)
			}
		}
		return files.Close()
	})
	if diff := machinetest.Diff("-rw-r--r-- /f cba06b5736fa 3\n", machinetest.Tree(t, root)); diff != "" {
		t.Error(diff)
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	require.Root(t)
	root := machinetest.Root(t)
	onOwnThread(t, unix.CLONE_NEWNS, func() error {
		if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=256k,mode=0755"); err != nil {
			return err
		}
		files, err := machine.OpenFS(root)
		if err != nil {
			return err
		}
		first := files.WriteFile("/etc/f", []byte("old"), 0o644)
		free, err := files.Free("/etc/absent/absent")
		if err != nil || free <= 0 || free >= 256<<10 {
			t.Errorf("%d bytes free of 256 KiB, error %v", free, err)
		}
		before := machinetest.Tree(t, root)
		err = files.WriteFile("/etc/f", make([]byte, 1<<20), 0o644)
		if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), filepath.Join(root, "etc/f")) {
			t.Errorf("error %v, want ENOSPC and the path", err)
		}
		if diff := machinetest.Diff(before, machinetest.Tree(t, root)); diff != "" {
			t.Errorf("the tree changed:\n%s", diff)
		}
		return errors.Join(first, files.Close())
	})
}
