package nodes_test

import (
	"strings"
	"testing"

	"github.com/machineadm/machineadm/testenv/nodes"
)

// A service's limits arrive at the kernel.
func TestLimits(t *testing.T) {
	t.Parallel()
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Bookworm, Limits: true})
	const show = `cat "/sys/fs/cgroup/$1/$(sed -n "s/.*:$1://p" /proc/self/cgroup)/$2"`
	for property, limit := range map[string]struct{ controller, file, value string }{
		"MemoryMax=20M": {"memory", "memory.limit_in_bytes", "20971520"},
		"TasksMax=7":    {"pids", "pids.max", "7"},
		"CPUQuota=40%":  {"cpu", "cpu.cfs_quota_us", "40000"},
	} {
		got := n.MustExec(t, "systemd-run", "--wait", "--pipe", "--property="+property, "sh", "-c", show, "sh", limit.controller, limit.file)
		if strings.TrimSpace(got.Stdout) != limit.value {
			t.Errorf("%s: %s is %q, want %q", property, limit.file, got.Stdout, limit.value)
		}
	}
}
