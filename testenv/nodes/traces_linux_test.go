package nodes_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
)

// wantNothing allows for the moment in which killed processes are on their way out and let go of the namespace.
func wantNothing(t *testing.T, name, network string) {
	t.Helper()
	nodestest.Eventually(t, "the processes of "+name+" to end", func() bool { return len(nodestest.Processes(t, name)) == 0 })
	if traces := nodestest.Traces(t, name); len(traces) > 0 {
		t.Errorf("left of %s:\n%s", name, strings.Join(traces, "\n"))
	}
	nodestest.Eventually(t, "the network namespace to go", func() bool { return len(holdersOf(t, name, network)) == 0 })
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

// namespacesOf lists the mounted network namespaces of a name.
func namespacesOf(t *testing.T, name string) []string {
	t.Helper()
	var mounted []string
	for line := range strings.Lines(readFile(t, "/proc/self/mountinfo")) {
		if strings.Contains(line, name) && strings.Contains(line, " - nsfs ") {
			mounted = append(mounted, line)
		}
	}
	return mounted
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
