package nodes_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// wantNothing allows for the moment in which killed processes are on their way out and let go of the namespace.
func wantNothing(t *testing.T, name, network string) {
	t.Helper()
	eventually(t, "the processes of "+name+" to end", func() bool { return len(processesOf(t, name)) == 0 })
	if traces := tracesOf(t, name); len(traces) > 0 {
		t.Errorf("left of %s:\n%s", name, strings.Join(traces, "\n"))
	}
	eventually(t, "the network namespace to go", func() bool { return len(holdersOf(t, name, network)) == 0 })
}

// tracesOf lists the processes, mounts, control groups and files that carry the node's name.
func tracesOf(t *testing.T, name string) []string {
	t.Helper()
	traces := processesOf(t, name)
	for line := range strings.Lines(readFile(t, "/proc/self/mountinfo")) {
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

func processesOf(t *testing.T, name string) []string {
	t.Helper()
	var found []string
	forEachProcess(t, func(dir string) {
		// A zombie is dead; when the host's init reaps it is not in our hands.
		if status, err := os.ReadFile(filepath.Join(dir, "status")); err != nil || strings.Contains(string(status), "State:\tZ") {
			return
		}
		for _, file := range []string{"cgroup", "cmdline"} {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err == nil && strings.Contains(string(text), name) {
				found = append(found, dir)
				return
			}
		}
	})
	return found
}

// holdersOf lists what keeps the node's network namespace (as /proc/PID/ns/net shows it) in being. The kernel gives the
// number of a namespace that is gone to the next one, so what belongs to other nodes is left out.
func holdersOf(t *testing.T, name, namespace string) []string {
	t.Helper()
	var holders []string
	keep := func(holder, owner string) {
		if !strings.Contains(owner, "machineadm-node-") || strings.Contains(owner, name) {
			holders = append(holders, holder)
		}
	}
	forEachProcess(t, func(dir string) {
		if now, err := os.Readlink(filepath.Join(dir, "ns/net")); err != nil || now != namespace {
			return
		}
		if group, err := os.ReadFile(filepath.Join(dir, "cgroup")); err == nil {
			keep(dir, string(group))
		}
	})
	for line := range strings.Lines(readFile(t, "/proc/self/mountinfo")) {
		if strings.Contains(line, namespace) {
			keep(line, line)
		}
	}
	return holders
}

func forEachProcess(t *testing.T, visit func(dir string)) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		visit(dir)
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited 10 s for %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
