package machine_test

import (
	"os"
	"path/filepath"
	"sync/atomic"
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

	stop, stopped := make(chan struct{}), make(chan struct{})
	var replacements atomic.Int64
	go replace(root, []string{outside, "../outside", "../" + filepath.Base(root) + "/../outside"}, &replacements, stop, stopped)
	writes, refusals := 0, 0
	enough := func() bool { return replacements.Load() >= 100 && refusals < writes }
	for began := time.Now(); time.Since(began) < 2*time.Second || !enough() && time.Since(began) < 2*time.Minute; {
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
	<-stopped
	if diff := machinetest.Diff(before, machinetest.Tree(t, outside)); diff != "" {
		t.Errorf("files outside the root changed:\n%s", diff)
	}
	t.Logf("%d operations, %d of them refused, during %d replacements", writes, refusals, replacements.Load())
	if !enough() {
		t.Error("too few operations for a result")
	}
}

// replace counts how often it replaced root/a by a link. It ignores errors, because the other side creates directories.
func replace(root string, targets []string, count *atomic.Int64, stop <-chan struct{}, stopped chan<- struct{}) {
	defer close(stopped)
	dir, aside := filepath.Join(root, "a"), filepath.Join(root, "aside")
	for {
		select {
		case <-stop:
			return
		default:
		}
		if unix.Rename(dir, aside) == nil && unix.Symlink(targets[int(count.Load())%len(targets)], dir) == nil {
			count.Add(1)
		}
		if target, err := os.Readlink(dir); err == nil && target != "" {
			_ = unix.Unlink(dir)
		}
		_ = os.RemoveAll(dir)
		_ = unix.Rename(aside, dir)
	}
}
