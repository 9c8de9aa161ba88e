package atomicfile

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
)

// onOwnThread runs fn on an operating-system thread that has its own umask and, with CLONE_NEWNS in flags, its own
// mounts. The thread ends with fn, and with it everything that fn changed, even if the test is killed.
func onOwnThread(t *testing.T, flags int, fn func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Never unlocked: the thread must not be used again.
		done <- func() error {
			if err := unix.Unshare(unix.CLONE_FS | flags); err != nil {
				return fmt.Errorf("unshare: %w", err)
			}
			if flags&unix.CLONE_NEWNS != 0 {
				if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
					return fmt.Errorf("make mounts private: %w", err)
				}
			}
			return fn()
		}()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestModeIsSetWhateverTheUmask(t *testing.T) {
	t.Parallel()
	for _, umask := range []int{0, 0o022, 0o077, 0o777} {
		for _, mode := range []fs.FileMode{0o644, 0o600, 0o666, 0o400, 0o755 | fs.ModeSetuid, 0o640 | fs.ModeSetgid} {
			dir := t.TempDir()
			onOwnThread(t, 0, func() error {
				unix.Umask(umask)
				return WriteFile(filepath.Join(dir, "f"), []byte("x"), Options{Mode: mode})
			})
			info, err := os.Stat(filepath.Join(dir, "f"))
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode() != mode {
				t.Errorf("umask %03o: mode %v, want %v", umask, info.Mode(), mode)
			}
		}
	}
}

func TestModeWithTypeBitsIsRefused(t *testing.T) {
	t.Parallel()
	err := WriteFile(filepath.Join(t.TempDir(), "f"), nil, Options{Mode: 0o644 | fs.ModeNamedPipe})
	if !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("error %v, want fs.ErrInvalid", err)
	}
}

func TestOwner(t *testing.T) {
	t.Parallel()
	require.Root(t)
	path := filepath.Join(t.TempDir(), "f")
	mode := 0o750 | fs.ModeSetuid
	if err := WriteFile(path, []byte("x"), Options{Mode: mode, Owner: &Owner{UID: 123, GID: 456}}); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	if st.Uid != 123 || st.Gid != 456 || st.Mode&0o7777 != 0o4750 {
		t.Errorf("owner %d:%d mode %o, want 123:456 4750", st.Uid, st.Gid, st.Mode&0o7777)
	}
}

func TestSELinuxLabel(t *testing.T) {
	t.Parallel()
	require.Root(t)
	for name, label := range map[string]string{
		"usual": "system_u:object_r:chronyd_etc_t:s0\x00", "long": "system_u:object_r:t:s0:" + strings.Repeat("c1,", 500) + "\x00",
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := unix.Setxattr(path, labelAttribute, []byte(label), 0); err != nil {
			require.Missing(t, "this file system takes no SELinux labels: "+err.Error())
		}
		if err := WriteFile(path, []byte("new"), Options{Mode: 0o644, KeepLabel: true}); err != nil {
			t.Fatal(err)
		}
		if got, err := readLabel(path); err != nil || got != label {
			t.Errorf("%s: label %q (%v) after a write that keeps it, want %q", name, got, err, label)
		}
		if err := WriteFile(path, []byte("newer"), Options{Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if got, err := readLabel(path); err != nil || got == label {
			t.Errorf("%s: label %q (%v) after a write that was not asked to keep it", name, got, err)
		}
	}
}

// TestFailureLeavesTheOldFile drives writes into a full disk, a read-only one and an immutable file.
func TestFailureLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	require.Root(t)
	big := []byte(strings.Repeat("x", 1<<20))
	for name, broken := range map[string]struct {
		prepare func(dir string) error
		want    unix.Errno
		step    string
	}{
		"full": {func(string) error { return nil }, unix.ENOSPC, "write the new contents"},
		"read-only": {func(dir string) error {
			return unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "")
		}, unix.EROFS, "create a temporary file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			onOwnThread(t, unix.CLONE_NEWNS, func() error {
				if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k,mode=0755"); err != nil {
					return err
				}
				path := filepath.Join(dir, "f")
				if err := WriteFile(path, []byte("old"), Options{Mode: 0o644}); err != nil {
					return err
				}
				if err := broken.prepare(dir); err != nil {
					return err
				}
				wantFailure(t, WriteFile(path, big, Options{Mode: 0o644}), path, broken.want, broken.step)
				return nil
			})
		})
	}
}

// The attributes of chattr(1), FS_IMMUTABLE_FL and FS_APPEND_FL of linux/fs.h.
const (
	immutable  = 0x10
	appendOnly = 0x20
)

// TestAttributes: an attribute of the file, or of its directory, keeps the old file; and of a new one nothing stays, also
// where it could be made and not be removed.
func TestAttributes(t *testing.T) {
	t.Parallel()
	require.Root(t)
	for name, test := range map[string]struct {
		flag        int
		ofDirectory bool
		step        string
	}{
		"immutable file":        {immutable, false, "the file is immutable (chattr -i)"},
		"append-only file":      {appendOnly, false, "the file is append-only (chattr -a)"},
		"immutable directory":   {immutable, true, "the directory is immutable (chattr -i)"},
		"append-only directory": {appendOnly, true, "the directory is append-only (chattr -a)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
				t.Fatal(err)
			}
			target := path
			if test.ofDirectory {
				target = filepath.Dir(path)
			}
			if err := setAttribute(target, test.flag, true); err != nil {
				require.Missing(t, "this file system has no such attributes: "+err.Error())
			}
			t.Cleanup(func() {
				if err := setAttribute(target, test.flag, false); err != nil {
					t.Error(err)
				}
			})
			err := WriteFile(path, []byte("new"), Options{Mode: 0o644})
			wantFailure(t, err, path, unix.EPERM, test.step)
			dir, err := os.Open(filepath.Dir(path))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := dir.Close(); err != nil {
					t.Error(err)
				}
			}()
			wantFailure(t, Symlink(dir, "/somewhere", "f"), path, unix.EPERM, test.step)
			for _, check := range []func(*os.File, string) error{CheckWrite, CheckSymlink, CheckRemoval} {
				wantFailure(t, check(dir, "f"), path, unix.EPERM, test.step)
			}
		})
	}
}

func setAttribute(path string, flag int, on bool) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	fd := int(file.Fd())
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	if err == nil {
		flags &^= flag
		if on {
			flags |= flag
		}
		err = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags)
	}
	return errors.Join(err, file.Close())
}

func wantFailure(t *testing.T, err error, path string, want unix.Errno, step string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), step) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want %v with %q and %s", err, want, step, path)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Errorf("the old file holds %.20q (%v)", got, err)
	}
	wantOnly(t, filepath.Dir(path), filepath.Base(path))
}

// TestStaleTemporary covers what may bear the reserved name when a write begins.
func TestStaleTemporary(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		leave   func(path string) error
		refused string
	}{
		"half a file":    {func(path string) error { return os.WriteFile(path, []byte("ha"), 0o600) }, ""},
		"made read-only": {func(path string) error { return os.WriteFile(path, []byte("ha"), 0o444) }, ""},
		"a pipe":         {func(path string) error { return unix.Mkfifo(path, 0o600) }, "not a regular file"},
		"a link":         {func(path string) error { return os.Symlink("/etc/hostname", path) }, "not a regular file"},
		"a directory":    {func(path string) error { return os.Mkdir(path, 0o700) }, "not a regular file"},
		"a second name of a file": {func(path string) error {
			other := filepath.Join(filepath.Dir(path), "z")
			return errors.Join(os.WriteFile(other, []byte("z"), 0o600), os.Link(other, path))
		}, "not made by machineadm"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			temporary := filepath.Join(dir, temporaryName("f", temporarySuffix))
			if err := test.leave(temporary); err != nil {
				t.Fatal(err)
			}
			err := WriteFile(filepath.Join(dir, "f"), []byte("new"), Options{Mode: 0o644})
			if test.refused == "" {
				if err != nil {
					t.Error(err)
				}
				wantOnly(t, dir, "f")
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("error %v, want one that says %q", err, test.refused)
			}
			if _, err := os.Lstat(temporary); err != nil {
				t.Errorf("what is not ours was removed: %v", err)
			}
		})
	}
}

func TestLiveOwnerIsWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	handle, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := handle.Close(); err != nil {
			t.Error(err)
		}
	})
	owner := writer{dir: int(handle.Fd()), dirName: dir, name: "f"}
	if err := owner.acquire(newBackoff(ownerWait)); err != nil {
		t.Fatal(err)
	}
	second := writer{dir: int(handle.Fd()), dirName: dir, name: "f"}
	if err := second.acquire(newBackoff(20 * time.Millisecond)); !errors.Is(err, ErrBusy) {
		t.Fatalf("error %v while a live writer holds the file, want ErrBusy", err)
	}
	wrote := make(chan error, 1)
	go func() { wrote <- Write(handle, "f", []byte("second"), Options{Mode: 0o644}) }()
	if err := owner.file.Close(); err != nil { // As if it had died: the file stays, the lock goes.
		t.Fatal(err)
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	wantOnly(t, dir, "f")
}
