package machine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// openFS returns the file system of an empty root, and the root.
func openFS(t *testing.T) (*machine.FS, string) {
	t.Helper()
	root := machinetest.Root(t)
	files, err := machine.OpenFS(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	})
	return files, root
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestLinksAreFollowedInsideTheRoot(t *testing.T) {
	t.Parallel()
	files, root := openFS(t)
	must(t,
		files.WriteFile("/usr/lib/os-release", []byte("inside"), 0o644),
		files.Symlink("/usr/lib/os-release", "/etc/absolute"),
		files.Symlink("../usr/lib/os-release", "/etc/relative"),
		files.Symlink("../../../../../../../../../../../usr/lib/os-release", "/etc/above"),
		files.Symlink("/usr/lib", "/lib"),
		files.Symlink("/lib/../lib/os-release", "/etc/dots"),
		files.Symlink("loop", "/etc/loop"),
	)
	for _, name := range []string{"/etc/absolute", "/etc/relative", "/etc/above", "/lib/os-release", "/etc/dots"} {
		if data, err := files.ReadFile(name); err != nil || string(data) != "inside" {
			t.Errorf("ReadFile(%s) = %q, %v", name, data, err)
		}
		if info, err := files.Stat(name); err != nil || !info.Mode.IsRegular() || info.Size != 6 || info.UID != os.Geteuid() {
			t.Errorf("Stat(%s) = %+v, %v", name, info, err)
		}
	}
	if _, err := files.ReadFile("/etc/loop"); !errors.Is(err, unix.ELOOP) {
		t.Errorf("error %v for a loop, want ELOOP", err)
	}
	if err := files.WriteFile("/etc/loop", nil, 0o644); !errors.Is(err, unix.ELOOP) {
		t.Errorf("error %v for writing through a loop, want ELOOP", err)
	}
	if info, err := files.Lstat("/etc/absolute"); err != nil || info.Mode.Type() != fs.ModeSymlink {
		t.Errorf("Lstat = %+v, %v, want a link", info, err)
	}
	if target, err := files.Readlink("/etc/relative"); err != nil || target != "../usr/lib/os-release" {
		t.Errorf("Readlink = %q, %v", target, err)
	}
	if names, err := files.ReadDir("/lib"); err != nil || fmt.Sprint(names) != "[os-release]" {
		t.Errorf("ReadDir = %q, %v", names, err)
	}
	_, err := files.ReadFile("/etc/absent")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), filepath.Join(root, "etc/absent")) {
		t.Errorf("error %v, want fs.ErrNotExist with the whole path", err)
	}
}

func TestNamesThatAreNotPathsOfTheTarget(t *testing.T) {
	t.Parallel()
	files, root := openFS(t)
	must(t, files.WriteFile("/etc/f", nil, 0o644))
	before := machinetest.Tree(t, root)
	for _, name := range []string{"", "etc/f", "../f", "/etc/../etc/f", "/..", "/etc/f\x00"} {
		_, read := files.ReadFile(name)
		_, stat := files.Stat(name)
		_, lstat := files.Lstat(name)
		_, list := files.ReadDir(name)
		_, readlink := files.Readlink(name)
		for _, err := range []error{
			read, stat, lstat, list, readlink, files.WriteFile(name, nil, 0o644), files.MkdirAll(name, 0o755),
			files.Symlink("x", name), files.Remove(name),
		} {
			if !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%q: error %v, want fs.ErrInvalid", name, err)
			}
		}
	}
	if diff := machinetest.Diff(before, machinetest.Tree(t, root)); diff != "" {
		t.Errorf("the tree changed:\n%s", diff)
	}
}

// TestOnlyRegularFiles hangs if a pipe is opened.
func TestOnlyRegularFiles(t *testing.T) {
	t.Parallel()
	files, root := openFS(t)
	must(t, files.MkdirAll("/dir", 0o755), unix.Mkfifo(filepath.Join(root, "pipe"), 0o644),
		unix.Mknod(filepath.Join(root, "socket"), unix.S_IFSOCK|0o644, 0),
		files.Symlink("/pipe", "/link"))
	names := map[string]error{
		"/pipe": machine.ErrNotRegular, "/socket": machine.ErrNotRegular,
		"/link": machine.ErrNotRegular, "/dir": unix.EISDIR,
	}
	if os.Geteuid() == 0 {
		// Memory devices (major 1) have no minor 8: opening it is another error.
		must(t, unix.Mknod(filepath.Join(root, "device"), unix.S_IFCHR|0o644, int(unix.Mkdev(1, 8))))
		names["/device"] = machine.ErrNotRegular
	}
	for name, want := range names {
		done := make(chan error, 2)
		go func() {
			_, err := files.ReadFile(name)
			done <- err
			done <- files.WriteFile(name, []byte("x"), 0o644)
		}()
		for _, operation := range []string{"read", "write"} {
			select {
			case err := <-done:
				if !errors.Is(err, want) {
					t.Errorf("%s %s: error %v, want %v", operation, name, err, want)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s %s hangs", operation, name)
			}
		}
	}
}

func TestReadLimit(t *testing.T) {
	t.Parallel()
	files, root := openFS(t)
	path := filepath.Join(root, "big")
	must(t, os.WriteFile(path, nil, 0o600), os.Truncate(path, machine.MaxFileBytes+1))
	if _, err := files.ReadFile("/big"); !errors.Is(err, machine.ErrTooLarge) {
		t.Errorf("error %v, want ErrTooLarge", err)
	}
	must(t, os.Truncate(path, machine.MaxFileBytes))
	if data, err := files.ReadFile("/big"); err != nil || len(data) != machine.MaxFileBytes {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// onOwnThread runs fn on a thread with its own umask and, with CLONE_NEWNS in flags, its own mounts. Both end with the
// thread.
func onOwnThread(t *testing.T, flags int, fn func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread must not be used again
		err := unix.Unshare(unix.CLONE_FS | flags)
		if err == nil && flags&unix.CLONE_NEWNS != 0 {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			err = fn()
		}
		done <- err
	}()
	must(t, <-done)
}

func withUmask(t *testing.T, umask int, fn func() error) {
	t.Helper()
	onOwnThread(t, 0, func() error {
		unix.Umask(umask)
		return fn()
	})
}

func TestModesWhateverTheUmask(t *testing.T) {
	t.Parallel()
	for _, umask := range []int{0, 0o022, 0o077, 0o777} {
		files, root := openFS(t)
		withUmask(t, umask, func() error {
			return errors.Join(files.WriteFile("/made/on/the/way", nil, 0o640), files.MkdirAll("/private/deep", 0o711))
		})
		want := "drwxr-xr-x /made\ndrwxr-xr-x /made/on\ndrwxr-xr-x /made/on/the\n" +
			"-rw-r----- /made/on/the/way e3b0c44298fc 0\ndrwx--x--x /private\ndrwx--x--x /private/deep\n"
		if diff := machinetest.Diff(want, machinetest.Tree(t, root)); diff != "" {
			t.Errorf("umask %03o:\n%s", umask, diff)
		}
	}
}

func TestMkdirAllLeavesWhatExists(t *testing.T) {
	t.Parallel()
	files, root := openFS(t)
	must(t, files.MkdirAll("/a", 0o700), files.MkdirAll("/a/b", 0o755), files.MkdirAll("/", 0o755),
		files.WriteFile("/file", nil, 0o644), files.Symlink("/nowhere", "/dangling"))
	if info, err := files.Stat("/a"); err != nil || info.Mode.Perm() != 0o700 {
		t.Errorf("the mode of a directory that existed is now %v (%v)", info.Mode, err)
	}
	for _, name := range []string{"/file", "/file/below", "/dangling", "/dangling/below"} {
		if err := files.MkdirAll(name, 0o755); !errors.Is(err, unix.ENOTDIR) {
			t.Errorf("MkdirAll(%s) = %v, want ENOTDIR", name, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(root, "nowhere")); err == nil {
		t.Error("a directory was created at the end of a dangling link")
	}
}

func TestWriteThroughLinks(t *testing.T) {
	t.Parallel()
	files, root := openFS(t)
	must(t, files.WriteFile("/usr/share/real", []byte("old"), 0o600), files.MkdirAll("/etc", 0o755),
		files.Symlink("/usr/share/real", "/etc/absolute"), files.Symlink("absolute", "/etc/chain"),
		files.Symlink("../usr/share/made/here", "/etc/dangling"), files.Symlink("/usr/share", "/etc/dir"))
	must(t, files.WriteFile("/etc/chain", []byte("new"), 0o644), files.WriteFile("/etc/dangling", []byte("made"), 0o644))
	for path, want := range map[string]string{"usr/share/real": "new", "usr/share/made/here": "made"} {
		if got, err := os.ReadFile(filepath.Join(root, path)); err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v), want %q", path, got, err, want)
		}
	}
	for _, link := range []string{"/etc/chain", "/etc/absolute", "/etc/dangling"} {
		if info, err := files.Lstat(link); err != nil || info.Mode.Type() != fs.ModeSymlink {
			t.Errorf("%s is no longer a link (%v)", link, err)
		}
	}
	if err := files.WriteFile("/etc/dir", nil, 0o644); !errors.Is(err, unix.EISDIR) {
		t.Errorf("error %v for a link to a directory, want EISDIR", err)
	}
}

func TestRemoveAndSymlink(t *testing.T) {
	t.Parallel()
	files, root := openFS(t)
	must(t, files.WriteFile("/d/f", nil, 0o644), files.Symlink("f", "/d/link"), files.MkdirAll("/d/empty", 0o755))
	if err := files.Remove("/d"); !errors.Is(err, unix.ENOTEMPTY) {
		t.Errorf("error %v, want ENOTEMPTY", err)
	}
	if err := files.Symlink("x", "/d/empty"); !errors.Is(err, unix.EISDIR) {
		t.Errorf("error %v for a link in place of a directory, want EISDIR", err)
	}
	must(t, files.Symlink("/other", "/d/link"), files.Symlink("deep", "/made/link"), files.Remove("/d/empty"),
		files.Remove("/d/empty"), files.Remove("/no/such/directory"), files.Remove("/d/f/below"))
	want := "drwxr-xr-x /d\n-rw-r--r-- /d/f e3b0c44298fc 0\nLrwxrwxrwx /d/link -> /other\n" +
		"drwxr-xr-x /made\nLrwxrwxrwx /made/link -> deep\n"
	if diff := machinetest.Diff(want, machinetest.Tree(t, root)); diff != "" {
		t.Error(diff)
	}
	must(t, files.Remove("/d/link"))
	if _, err := files.Lstat("/d/link"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want fs.ErrNotExist", err)
	}
	if err := files.Remove("/"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("error %v for removing the root, want fs.ErrInvalid", err)
	}
}

func TestDirectoriesThatOthersCanWrite(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		modes   map[string]fs.FileMode
		file    string
		refused string
	}{
		"own":                 {map[string]fs.FileMode{"a": 0o755}, "/a/f", ""},
		"group":               {map[string]fs.FileMode{"a": 0o775}, "/a/f", "a"},
		"everyone":            {map[string]fs.FileMode{"a": 0o777}, "/a/f", "a"},
		"sticky":              {map[string]fs.FileMode{"a": 0o777 | fs.ModeSticky}, "/a/f", "a"},
		"sticky ancestor":     {map[string]fs.FileMode{"a": 0o777 | fs.ModeSticky, "a/b": 0o755}, "/a/b/f", ""},
		"ancestor":            {map[string]fs.FileMode{"a": 0o777, "a/b": 0o755}, "/a/b/f", "a"},
		"missing, below open": {map[string]fs.FileMode{"a": 0o777}, "/a/b/c/f", "a"},
		"root":                {map[string]fs.FileMode{".": 0o777, "a": 0o755}, "/a/f", "."},
		"link through it":     {map[string]fs.FileMode{"a": 0o777, "b": 0o755}, "/a/to-b/f", "a"},
		"behind a link":       {map[string]fs.FileMode{"a": 0o777, "a/b": 0o755}, "/to-ab/f", "a"},
		"final link":          {map[string]fs.FileMode{"a": 0o777, "b": 0o755}, "/b/to-f", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, root := openFS(t)
			for path := range test.modes {
				must(t, os.MkdirAll(filepath.Join(root, path), 0o755))
			}
			must(t, os.Symlink("/a/b", filepath.Join(root, "to-ab")), os.MkdirAll(filepath.Join(root, "a"), 0o755),
				os.MkdirAll(filepath.Join(root, "b"), 0o755), os.Symlink("/b", filepath.Join(root, "a/to-b")),
				os.Symlink("../a/f", filepath.Join(root, "b/to-f")))
			for path, mode := range test.modes {
				must(t, os.Chmod(filepath.Join(root, path), mode))
			}
			before := machinetest.Tree(t, root)
			operations := map[string]error{"write": files.WriteFile(test.file, nil, 0o644)}
			if name != "final link" { // only a write follows the last link
				operations["symlink"] = files.Symlink("x", test.file+"-link")
				operations["mkdir"] = files.MkdirAll(test.file+"-dir", 0o755)
				operations["remove"] = files.Remove(test.file)
			}
			for operation, err := range operations {
				if name == "missing, below open" && operation == "remove" {
					continue
				}
				if test.refused == "" && err != nil {
					t.Errorf("%s: %v", operation, err)
				}
				where := fmt.Sprintf("%q", filepath.Join(root, test.refused))
				if test.refused != "" && (!errors.Is(err, machine.ErrUnsafe) || !strings.Contains(err.Error(), where)) {
					t.Errorf("%s: error %v, want ErrUnsafe that names %s", operation, err, where)
				}
			}
			if diff := machinetest.Diff(before, machinetest.Tree(t, root)); test.refused != "" && diff != "" {
				t.Errorf("the tree changed:\n%s", diff)
			}
		})
	}
}

func TestParentOfAnotherUser(t *testing.T) {
	t.Parallel()
	require.Root(t)
	files, root := openFS(t)
	must(t, files.MkdirAll("/home/user", 0o755), os.Chown(filepath.Join(root, "home/user"), 12345, 0))
	err := files.WriteFile("/home/user/f", nil, 0o644)
	if !errors.Is(err, machine.ErrUnsafe) || !strings.Contains(err.Error(), "12345") {
		t.Errorf("error %v, want ErrUnsafe that names the owner", err)
	}
}

func TestWriteFileAs(t *testing.T) {
	t.Parallel()
	require.Root(t)
	files, _ := openFS(t)
	must(t, files.WriteFileAs("/etc/key", []byte("k"), 0o640, 0, 77))
	if info, err := files.Stat("/etc/key"); err != nil || info.UID != 0 || info.GID != 77 || info.Mode != 0o640 {
		t.Errorf("%+v, %v, want 0:77 0640", info, err)
	}
}
