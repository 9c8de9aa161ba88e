package nodestest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Traces lists the processes, mounts, control groups and files of this machine that carry the node's name.
func Traces(t testing.TB, name string) []string {
	t.Helper()
	traces := Processes(t, name)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, name) {
			traces = append(traces, "mount "+line)
		}
	}
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/sys/fs/cgroup", "/run", filepath.Join(user, "machineadm-testenv/run"), os.TempDir()} {
		// Not into the nodes: their contents are not traces, and other tests change them meanwhile.
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // gone meanwhile
			}
			if strings.Contains(d.Name(), name) {
				traces = append(traces, path)
			}
			if d.IsDir() && strings.HasPrefix(d.Name(), "machineadm-node-") {
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return traces
}

// Processes lists the processes of this machine that carry the node's name in their arguments or control group.
func Processes(t testing.TB, name string) []string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, dir := range dirs {
		// A zombie has ended; the host's init reaps it at some time.
		if status, err := os.ReadFile(filepath.Join(dir, "status")); err != nil || strings.Contains(string(status), "State:\tZ") {
			continue
		}
		for _, file := range []string{"cgroup", "cmdline"} {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err == nil && strings.Contains(string(text), name) {
				found = append(found, dir)
				break
			}
		}
	}
	return found
}

// Eventually waits for a condition that comes without further action.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	Within(t, 4*time.Minute, what, holds)
}

// Within is Eventually with another limit.
func Within(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", limit, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
