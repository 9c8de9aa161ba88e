package hardship

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/require"
)

// isolate gives the test a thread of its own with mounts, and other namespaces of flags, private to it. They end with
// the thread, which ends with the test's goroutine, and so also when the tests are killed. What the test starts runs there.
func isolate(t *testing.T, flags int) {
	t.Helper()
	require.Root(t)
	runtime.LockOSThread() // never unlocked: the thread must not be used again
	if err := unix.Unshare(unix.CLONE_NEWNS | flags); err != nil {
		t.Fatalf("unshare: %v", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatalf("make mounts private: %v", err)
	}
	// In memory, because hundreds of runs on a disk are slow.
	mount(t, "tmpfs", filepath.Join(built, benches), "tmpfs", "mode=0700")
}

// mount mounts on a directory, which is made, until the test ends.
func mount(t *testing.T, source, at, kind, options string) {
	t.Helper()
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(source, at, kind, 0, options); err != nil {
		t.Fatalf("mount %s on %s: %v", kind, at, err)
	}
	t.Cleanup(func() { unmount(t, at) })
}

func unmount(t *testing.T, at string) {
	t.Helper()
	if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
		t.Errorf("unmount %s: %v", at, err)
	}
}

func mountTmpfs(t *testing.T, at string) {
	t.Helper()
	mount(t, "tmpfs", at, "tmpfs", "size=1m,nr_inodes=100,mode=0755")
}

// mountImage mounts a new file system in a file. The kernel frees the loop device when the mount is gone.
func mountImage(t *testing.T, at, size string, mkfs ...string) {
	t.Helper()
	image := at + "." + filepath.Base(built)
	command(t, "truncate", "--size="+size, image)
	command(t, mkfs[0], append(mkfs[1:], image)...)
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, "mount", "-o", "loop", image, at)
	t.Cleanup(func() { unmount(t, at) })
}

// mountExt4 has small blocks, and none that only root can use.
func mountExt4(t *testing.T, at string) {
	t.Helper()
	mountImage(t, at, "4M", require.Tool(t, "mke2fs"), "-q", "-F", "-t", "ext4", "-b", "1024", "-m", "0", "-N", "128")
}

// mountBtrfs has quotas of its own: ext4's need a part of the kernel that is missing from many. The disk is a
// subvolume, because the quota of a full subvolume cannot be raised.
func mountBtrfs(t *testing.T, at string) {
	t.Helper()
	mountImage(t, at+whole, "32M", require.Tool(t, "mkfs.btrfs"), "-q", "-M")
	command(t, "btrfs", "quota", "enable", at+whole)
	command(t, "btrfs", "subvolume", "create", filepath.Join(at+whole, "s"))
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(filepath.Join(at+whole, "s"), at, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unmount(t, at) })
}

// whole is the suffix of a disk that contains another one.
const whole = ".whole"

// command runs a program that must succeed, on the thread of the test.
func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// hardship is a fault of a directory. strike causes it and returns a function that ends it.
type hardship struct {
	mount func(t *testing.T, at string)
	// strike hits the file system that is mounted at at, or only a directory or a file of it.
	strike func(t *testing.T, at, dir, file string) (repair func())
	// file says that a single file is hit, disk that all of the file system is, and only a write finds out.
	file, disk bool
	// hint is the advice in a plugin's error about it.
	hint string
}

func hardships() map[string]hardship {
	return map[string]hardship{
		"full tmpfs":            {mountTmpfs, full, false, true, "free some space"},
		"full ext4":             {mountExt4, full, false, true, "free some space"},
		"tmpfs without inodes":  {mountTmpfs, noInodes, false, true, "df -i"},
		"ext4 without inodes":   {mountExt4, noInodes, false, true, "df -i"},
		"quota":                 {mountBtrfs, quota, false, true, "quota"},
		"read-only file system": {mountTmpfs, remounted, false, false, "make that file system writable"},
		"read-only bind mount":  {mountTmpfs, bound, false, false, "make that file system writable"},
		"immutable directory":   {mountExt4, attribute("i", false), false, false, "lsattr"},
		"append-only directory": {mountExt4, attribute("a", false), false, false, "lsattr"},
		"immutable file":        {mountExt4, attribute("i", true), true, false, "lsattr"},
		"append-only file":      {mountExt4, attribute("a", true), true, false, "lsattr"},
	}
}

// full leaves no free block.
func full(t *testing.T, at, _, _ string) func() {
	t.Helper()
	filler := fill(t, at, 0)
	return func() { removeAll(t, filler) }
}

// fill leaves a number of free blocks, and returns the file that takes the others.
func fill(t *testing.T, at string, blocks int64) string {
	t.Helper()
	filler := filepath.Join(at, "filler")
	file, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // never read
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	for step := int64(st.Bavail); step > 0; {
		switch err := unix.Fallocate(int(file.Fd()), 0, size, step*st.Bsize); {
		case err == nil:
			size += step * st.Bsize
		case errors.Is(err, unix.ENOSPC):
			step /= 2
		case !errors.Is(err, unix.EINTR):
			t.Fatalf("fill %s: %v", at, err)
		}
	}
	if err := file.Truncate(max(0, size-blocks*st.Bsize)); err != nil {
		t.Fatal(err)
	}
	return filler
}

// noInodes leaves no free inode.
func noInodes(t *testing.T, at, _, _ string) func() {
	t.Helper()
	fillers := takeInodes(t, at, 0)
	return func() { removeAll(t, fillers) }
}

// takeInodes leaves a number of inodes, and returns the directory of the files that use the others.
func takeInodes(t *testing.T, at string, left int) string {
	t.Helper()
	dir := filepath.Join(at, "fillers")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		err := os.WriteFile(filepath.Join(dir, strconv.Itoa(n)), nil, 0o600)
		if errors.Is(err, unix.ENOSPC) {
			for ; left > 0; left-- {
				n--
				removeAll(t, filepath.Join(dir, strconv.Itoa(n)))
			}
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func removeAll(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// quota sets the limit to the present use.
func quota(t *testing.T, at, _, _ string) func() {
	t.Helper()
	const first = "0/256" // the number of a file system's first subvolume
	command(t, "btrfs", "qgroup", "limit", "1", first, at+whole)
	return func() { command(t, "btrfs", "qgroup", "limit", "none", first, at+whole) }
}

func remounted(t *testing.T, at, _, _ string) func() {
	t.Helper()
	remount := func(flags uintptr) {
		if err := unix.Mount("", at, "", unix.MS_REMOUNT|flags, ""); err != nil {
			t.Fatalf("remount %s: %v", at, err)
		}
	}
	remount(unix.MS_RDONLY)
	return func() { remount(0) }
}

func bound(t *testing.T, _, dir, _ string) func() {
	t.Helper()
	err := unix.Mount(dir, dir, "", unix.MS_BIND, "")
	if err == nil {
		err = unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	}
	if err != nil {
		t.Fatalf("bind %s: %v", dir, err)
	}
	return func() { unmount(t, dir) }
}

// attribute sets an attribute of chattr(1) on the directory or on the file.
func attribute(which string, ofFile bool) func(t *testing.T, at, dir, file string) func() {
	return func(t *testing.T, _, dir, file string) func() {
		t.Helper()
		target := dir
		if ofFile {
			target = file
		}
		chattr := func(sign string) {
			if out, err := exec.Command("chattr", sign+which, target).CombinedOutput(); err != nil {
				t.Fatalf("chattr %s%s %s: %v\n%s", sign, which, target, err, out)
			}
		}
		chattr("+")
		return func() { chattr("-") }
	}
}

// freeBlocks is for messages.
func freeBlocks(at string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d blocks of %d bytes and %d inodes are free", st.Bavail, st.Bsize, st.Ffree)
}
