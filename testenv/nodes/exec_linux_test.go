package nodes_test

import (
	"testing"

	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
)

func TestExec(t *testing.T) {
	t.Parallel()
	for _, suite := range nodes.Suites() {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			n := nodes.Boot(t, nodes.Options{Suite: suite})
			nodestest.Exec(t, n)
			t.Run("inside", func(t *testing.T) { nodestest.ExecIsInside(t, n) })
			t.Run("stdin", func(t *testing.T) { nodestest.ExecInput(t, n) })
			t.Run("at once", func(t *testing.T) { nodestest.ExecAtOnce(t, n) })
			t.Run("cancel", func(t *testing.T) { nodestest.ExecCancel(t, n) })
			for _, ns := range []string{"mnt", "uts", "ipc", "net", "pid", "cgroup"} {
				if self := n.MustExec(t, "readlink", "/proc/self/ns/"+ns).Stdout; self == readlink(t, "/proc/self/ns/"+ns)+"\n" {
					t.Errorf("the %s namespace is the host's", ns)
				}
			}
		})
	}
}

func TestCopy(t *testing.T) {
	t.Parallel()
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Bookworm})
	nodestest.Copy(t, n)
	nodestest.CopyOverARunningProgram(t, n)
}
