package machine_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestReplacedDirectories replaces a directory by links that lead out of the root, during reads, writes and removals below it.
func TestReplacedDirectories(t *testing.T) {
	t.Parallel()
	files, root := openFS(t)
	outside := filepath.Join(filepath.Dir(root), "outside")
	must(t, os.MkdirAll(filepath.Join(outside, "b"), 0o755), os.WriteFile(filepath.Join(outside, "b/f"), []byte("outside"), 0o644))
	must(t, files.WriteFile("/a/b/f", []byte("inside"), 0o644))
	before := machinetest.Tree(t, outside)

	stop, stopped := make(chan struct{}), make(chan int)
	go replace(root, []string{outside, "../outside", "../" + filepath.Base(root) + "/../outside"}, stop, stopped)
	writes, refusals := 0, 0
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); {
		if data, err := files.ReadFile("/a/b/f"); err == nil && string(data) != "inside" && string(data) != "new" {
			t.Fatalf("read %q from outside the root", data)
		}
		if names, err := files.ReadDir("/a/b"); err == nil {
			for _, name := range names {
				if name == "only-outside" {
					t.Fatal("listed a directory outside the root")
				}
			}
		}
		for _, err := range []error{
			files.WriteFile("/a/b/f", []byte("new"), 0o644), files.WriteFile("/a/b/c/d", nil, 0o644),
			files.Symlink("x", "/a/b/link"), files.Remove("/a/b/link"), files.MkdirAll("/a/b/e/g", 0o755), files.Remove("/a/b/f"),
		} {
			if err != nil {
				refusals++
			}
			writes++
		}
	}
	close(stop)
	replacements := <-stopped
	if diff := machinetest.Diff(before, machinetest.Tree(t, outside)); diff != "" {
		t.Errorf("files outside the root changed:\n%s", diff)
	}
	t.Logf("%d operations, %d of them refused, during %d replacements", writes, refusals, replacements)
	if replacements < 100 || refusals == writes {
		t.Error("too few operations for a result")
	}
}

// replace counts how often it replaced root/a by a link. It ignores errors, because the other side creates directories.
func replace(root string, targets []string, stop <-chan struct{}, stopped chan<- int) {
	dir, aside := filepath.Join(root, "a"), filepath.Join(root, "aside")
	count := 0
	for {
		select {
		case <-stop:
			stopped <- count
			return
		default:
		}
		if unix.Rename(dir, aside) == nil && unix.Symlink(targets[count%len(targets)], dir) == nil {
			count++
		}
		if target, err := os.Readlink(dir); err == nil && target != "" {
			_ = unix.Unlink(dir)
		}
		_ = os.RemoveAll(dir)
		_ = unix.Rename(aside, dir)
	}
}
