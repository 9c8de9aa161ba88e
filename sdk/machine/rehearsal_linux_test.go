package machine_test

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	requires "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// image returns two equal image roots: one in which changes are rehearsed, and one in which they are made.
func image(t *testing.T, build func(root string)) (rehearsed, made machine.Machine, root string) {
	t.Helper()
	rehearsed, root = machinetest.NewImage(t)
	made, other := machinetest.NewImage(t)
	for _, at := range []string{root, other} {
		require.NoError(t, os.MkdirAll(filepath.Join(at, "etc/d"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(at, "etc/d/file"), []byte("old"), 0o644))
		build(at)
	}
	return rehearsed.Rehearsal(nil), made, root
}

// TestRehearsalMeetsErrors: what the files of a machine hold against a change, its rehearsal finds, with the same error, and changes
// nothing.
func TestRehearsalMeetsErrors(t *testing.T) {
	t.Parallel()
	requires.Root(t)
	write := func(name string) func(machine.Machine) error {
		return func(m machine.Machine) error { return m.FS.WriteFile(name, []byte("new"), 0o644) }
	}
	mode := func(name string, mode fs.FileMode) func(*testing.T, string) error {
		return func(_ *testing.T, root string) error { return os.Chmod(filepath.Join(root, name), mode) }
	}
	link := func(name, target string) func(*testing.T, string) error {
		return func(_ *testing.T, root string) error { return os.Symlink(target, filepath.Join(root, name)) }
	}
	attribute := func(name, flag string) func(*testing.T, string) error {
		return func(t *testing.T, root string) error {
			name, chattr := filepath.Join(root, name), requires.Tool(t, "chattr")
			if err := exec.CommandContext(t.Context(), chattr, "+"+flag, name).Run(); err != nil {
				requires.Missing(t, "this file system has no such attributes: "+err.Error())
			}
			t.Cleanup(func() { assert.NoError(t, exec.CommandContext(context.Background(), chattr, "-"+flag, name).Run()) })
			return nil
		}
	}
	const temporary = "etc/d/.file.machineadm-tmp"
	for name, c := range map[string]struct {
		build  func(t *testing.T, root string) error
		change func(machine.Machine) error
		err    error
	}{
		"a directory of another user": {func(_ *testing.T, root string) error { return os.Chown(filepath.Join(root, "etc/d"), 1000, 0) }, write("/etc/d/file"), machine.ErrUnsafe},
		"a root of another user":      {func(_ *testing.T, root string) error { return os.Chown(root, 1000, 0) }, write("/etc/d/new"), machine.ErrUnsafe},
		"a directory of everyone":     {mode("etc/d", 0o777), write("/etc/d/file"), machine.ErrUnsafe},
		"a directory of a group":      {mode("etc", 0o775), write("/etc/new/x/file"), machine.ErrUnsafe},
		"a sticky directory":          {mode("etc/d", 0o777|fs.ModeSticky), write("/etc/d/new"), machine.ErrUnsafe},
		"a removal in it":             {mode("etc/d", 0o777), func(m machine.Machine) error { return m.FS.Remove("/etc/d/file") }, machine.ErrUnsafe},
		"a link in it":                {mode("etc/d", 0o777), func(m machine.Machine) error { return m.FS.Symlink("x", "/etc/d/link") }, machine.ErrUnsafe},
		"a directory in it":           {mode("etc/d", 0o777), func(m machine.Machine) error { return m.FS.MkdirAll("/etc/d/x", 0o755) }, machine.ErrUnsafe},
		"a link out of it": {func(_ *testing.T, root string) error {
			return cmp.Or(os.Chmod(filepath.Join(root, "etc/d"), 0o777), os.Symlink("/etc/d/new", filepath.Join(root, "etc/link")))
		}, write("/etc/link"), machine.ErrUnsafe},
		"a dangling directory":           {link("etc/link", "/nowhere"), write("/etc/link/file"), unix.ENOTDIR},
		"a dangling directory below":     {link("etc/link", "/nowhere"), write("/etc/link/x/y/file"), unix.ENOTDIR},
		"links in a circle":              {link("etc/link", "link"), write("/etc/link"), unix.ELOOP},
		"directories in a circle":        {link("etc/link", "link"), write("/etc/link/file"), unix.ELOOP},
		"a link that means directory":    {link("etc/link", "/etc/new/"), write("/etc/link"), unix.EISDIR},
		"a directory in the place":       {func(*testing.T, string) error { return nil }, write("/etc/d"), unix.EISDIR},
		"a path below a file":            {func(*testing.T, string) error { return nil }, write("/etc/d/file/x"), unix.ENOTDIR},
		"a pipe in the place":            {func(_ *testing.T, root string) error { return unix.Mkfifo(filepath.Join(root, "etc/d/pipe"), 0o600) }, write("/etc/d/pipe"), machine.ErrNotRegular},
		"a name that is too long":        {func(*testing.T, string) error { return nil }, write("/etc/d/" + strings.Repeat("x", 256)), unix.ENAMETOOLONG},
		"a directory of such a name":     {func(*testing.T, string) error { return nil }, write("/etc/" + strings.Repeat("x", 256) + "/file"), unix.ENAMETOOLONG},
		"an immutable directory":         {attribute("etc/d", "i"), write("/etc/d/new"), unix.EPERM},
		"an immutable directory above":   {attribute("etc/d", "i"), write("/etc/d/new/x"), unix.EPERM},
		"an append-only directory":       {attribute("etc/d", "a"), write("/etc/d/new"), unix.EPERM},
		"an immutable file":              {attribute("etc/d/file", "i"), write("/etc/d/file"), unix.EPERM},
		"an append-only file":            {attribute("etc/d/file", "a"), write("/etc/d/file"), unix.EPERM},
		"the removal of such a file":     {attribute("etc/d/file", "a"), func(m machine.Machine) error { return m.FS.Remove("/etc/d/file") }, unix.EPERM},
		"a name of a temporary file":     {func(*testing.T, string) error { return nil }, write("/etc/d/.x.machineadm-tmp"), machine.ErrReserved},
		"such a name in a new directory": {func(*testing.T, string) error { return nil }, write("/etc/new/.x.machineadm-tmplink"), machine.ErrReserved},
		"a link to such a name":          {link("etc/link", "/etc/d/.x.machineadm-tmp"), write("/etc/link"), machine.ErrReserved},
		"a foreign temporary file":       {func(_ *testing.T, root string) error { return os.Mkdir(filepath.Join(root, temporary), 0o755) }, write("/etc/d/file"), machine.ErrForeign},
		"a foreign temporary link":       {link(temporary, "x"), write("/etc/d/file"), machine.ErrForeign},
		"a directory that is not empty": {
			func(*testing.T, string) error { return nil }, func(m machine.Machine) error { return m.FS.Remove("/etc/d") },
			unix.ENOTEMPTY,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rehearsed, made, root := image(t, func(root string) { require.NoError(t, c.build(t, root)) })
			before := machinetest.Tree(t, root)
			require.ErrorIs(t, c.change(made), c.err)
			if planned := c.change(rehearsed); assert.ErrorIs(t, planned, c.err) {
				assert.NotContains(t, planned.Error(), "report this defect")
			}
			assert.Empty(t, rehearsed.FS.Rehearsed())
			assert.Equal(t, before, machinetest.Tree(t, root))
		})
	}
}

// TestRehearsalShowsChanges: after each change, whatever reads a rehearsal finds what it would find after the change itself.
func TestRehearsalShowsChanges(t *testing.T) {
	t.Parallel()
	requires.Root(t)
	const unit = "[Install]\nWantedBy=multi-user.target\nAlias=alias.service\n"
	rehearsed, made, root := image(t, func(root string) {
		require.NoError(t, cmp.Or(os.MkdirAll(filepath.Join(root, "srv/deep/empty"), 0o755), os.Symlink("/srv", filepath.Join(root, "etc/srv")),
			os.Symlink("file", filepath.Join(root, "etc/d/link")), os.MkdirAll(filepath.Join(root, "usr/lib/systemd/system"), 0o755),
			os.WriteFile(filepath.Join(root, "usr/lib/systemd/system/x.service"), []byte(unit), 0o644)))
	})
	before := machinetest.Tree(t, root)
	files := func(change func(*machine.FS) error) func(machine.Machine) error {
		return func(m machine.Machine) error { return change(m.FS) }
	}
	for i, change := range []func(machine.Machine) error{
		files(func(f *machine.FS) error { return f.WriteFile("/etc/srv/new/file", []byte("1"), 0o640) }),
		files(func(f *machine.FS) error { return f.WriteFile("/srv/new/second", []byte("2"), 0o600) }),
		files(func(f *machine.FS) error { return f.WriteFileAs("/etc/d/link", []byte("3"), 0o644, 12, 34) }),
		files(func(f *machine.FS) error { return f.Symlink("/srv/new", "/etc/d/other") }),
		files(func(f *machine.FS) error { return f.WriteFile("/etc/d/other/through", []byte("4"), 0o644) }),
		files(func(f *machine.FS) error { return f.Chmod("/etc/d/file", 0o600) }),
		files(func(f *machine.FS) error { return f.Chown("/srv/new/file", 5, -1) }),
		files(func(f *machine.FS) error { return f.Remove("/etc/d/link") }),
		files(func(f *machine.FS) error { return f.Remove("/etc/nothing/at/all") }),
		files(func(f *machine.FS) error { return f.Remove("/srv/deep/empty") }),
		files(func(f *machine.FS) error { return f.Remove("/etc/srv/deep") }),
		files(func(f *machine.FS) error { return f.MkdirAll("/srv/deep/again", 0o750) }),
		files(func(f *machine.FS) error { return f.Symlink("nowhere", "/etc/dangling") }),
		func(m machine.Machine) error { return m.Services.SetEnabled(t.Context(), "x.service", true) },
		func(m machine.Machine) error { return m.Services.SetEnabled(t.Context(), "x.service", false) },
	} {
		require.NoError(t, change(rehearsed), "%d", i)
		require.NoError(t, change(made), "%d", i)
		require.Equal(t, everything(t, made), everything(t, rehearsed), "%d", i)
		later := rehearsed.Rehearsal(rehearsed.FS.Rehearsed()) // of the next document
		require.Equal(t, everything(t, made), everything(t, later), "%d", i)
		require.Empty(t, later.FS.Rehearsed())
	}
	assert.Equal(t, before, machinetest.Tree(t, root), "nothing was changed")
}

// everything describes what is below the root as FS shows it, and a few paths that lead through links or nowhere.
func everything(t *testing.T, m machine.Machine) string {
	t.Helper()
	var text strings.Builder
	var visit func(name string)
	visit = func(name string) {
		info, err := m.FS.Lstat(name)
		require.NoError(t, err, name)
		if info.Mode.IsDir() {
			info.Size = 0
		}
		fmt.Fprintf(&text, "%s %v %d %d %d", name, info.Mode, info.UID, info.GID, info.Size)
		switch {
		case info.Mode.IsRegular():
			data, err := m.FS.ReadFile(name)
			require.NoError(t, err, name)
			fmt.Fprintf(&text, " %q", data)
		case info.Mode.Type() == fs.ModeSymlink:
			target, err := m.FS.Readlink(name)
			require.NoError(t, err, name)
			fmt.Fprintf(&text, " -> %s", target)
		}
		text.WriteString("\n")
		if info.Mode.IsDir() {
			names, err := m.FS.ReadDir(name)
			require.NoError(t, err, name)
			for _, child := range names {
				visit(filepath.Join(name, child))
			}
		}
	}
	visit("/")
	for _, name := range []string{"/etc/srv/new/file", "/etc/d/other/file", "/etc/d/link", "/etc/d/file/x", "/etc/dangling", "/srv/deep", "/nothing/x"} {
		info, err := m.FS.Stat(name)
		data, readErr := m.FS.ReadFile(name)
		names, listErr := m.FS.ReadDir(name)
		destination, _ := m.FS.Destination(name)
		fmt.Fprintln(&text, name, info.Mode, errno(err), string(data), errno(readErr), names, errno(listErr), destination)
	}
	state, err := m.Services.State(t.Context(), "alias.service")
	fmt.Fprintln(&text, state, err)
	return text.String()
}

// errno is the error of the system, without the path of the root.
func errno(err error) string {
	for e := err; e != nil; {
		if number, ok := e.(syscall.Errno); ok { //nolint:errorlint // the loop unwraps
			return number.Error()
		}
		unwrapped, ok := e.(interface{ Unwrap() error })
		if !ok {
			return e.Error()
		}
		e = unwrapped.Unwrap()
	}
	return ""
}

// TestRehearsalOfOneFileTwice: the later of two writes would undo the earlier one in each run.
func TestRehearsalOfOneFileTwice(t *testing.T) {
	t.Parallel()
	rehearsed, _, _ := image(t, func(root string) { require.NoError(t, os.Symlink("d", filepath.Join(root, "etc/link"))) })
	require.NoError(t, rehearsed.FS.WriteFile("/etc/d/new", []byte("1"), 0o644))
	require.NoError(t, rehearsed.FS.WriteFile("/etc/link/new", []byte("1"), 0o644))
	require.ErrorIs(t, rehearsed.FS.WriteFile("/etc/link/new", []byte("2"), 0o644), machine.ErrTwice)
	require.NoError(t, rehearsed.Rehearsal(rehearsed.FS.Rehearsed()).FS.WriteFile("/etc/link/new", []byte("2"), 0o644), "by another document")
}
