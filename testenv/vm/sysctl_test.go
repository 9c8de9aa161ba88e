package vm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const nodeFile = "/etc/machineadm/node.yaml"

// stream sets what a container may not: parameters of the whole kernel, modules, and parameters that are there only
// once their module is.
const stream = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Sysctl
metadata: {name: kubernetes}
spec:
  provider: procfs
  profiles: [kubernetes, kubelet-protect-defaults]
---
apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Sysctl
metadata: {name: tuning}
spec:
  modules: [nf_conntrack, tcp-bbr, dummy]
  parameters:
    vm.swappiness: 13
    vm.max_map_count: 262145
    vm.dirty_background_bytes: 16777216
    kernel.pid_max: 131072
    kernel.printk: 4 4 1 7
    kernel.core_pattern: "|/bin/false %p %s"
    net.netfilter.nf_conntrack_max: 65537
    net.ipv4.tcp_congestion_control: bbr
    net/ipv4/tcp_rmem: "4096 131072 6291456"
`

// values are the kernel's values after the stream.
func values() map[string]string {
	return map[string]string{
		"net/ipv4/ip_forward": "1", "net/bridge/bridge-nf-call-iptables": "1", "net/bridge/bridge-nf-call-ip6tables": "1",
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
		"vm/swappiness": "13", "vm/max_map_count": "262145", "vm/dirty_background_bytes": "16777216",
		"kernel/pid_max": "131072", "kernel/printk": "4 4 1 7", "kernel/core_pattern": "|/bin/false %p %s",
		"net/netfilter/nf_conntrack_max": "65537", "net/ipv4/tcp_congestion_control": "bbr",
		"net/ipv4/tcp_rmem": "4096 131072 6291456",
	}
}

func modules() []string {
	return []string{"overlay", "br_netfilter", "nf_conntrack", "tcp_bbr", "dummy"}
}

// TestSysctl: one machine, from its first apply over a stepped clock, a reboot and a power cut, which comes at another
// moment for each suite.
func TestSysctl(t *testing.T) {
	require.Tier(t, require.VM)
	install := product(t)
	for suite, changes := range map[nodes.Suite]int{nodes.Bookworm: 1, nodes.Trixie: 2 * many} {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			n := nodes.Boot(t, nodes.Options{Suite: suite, VM: true, Prepare: nodes.InOrder(
				install, file(nodeFile, stream, 0o600),
			)})
			before := n.MustExec(t, "cat", "/proc/modules").Stdout
			for _, m := range modules() {
				if strings.Contains("\n"+before, "\n"+m+" ") {
					t.Fatalf("module %s is loaded before anything is applied: the test would prove nothing", m)
				}
			}
			t.Run("apply", func(t *testing.T) {
				if r := apply(t, n, nodeFile, report.Changed); len(r.Documents) != 2 {
					t.Errorf("report: %+v", r)
				}
				live(t, n, values(), modules()...)
			})
			t.Run("again", func(t *testing.T) {
				converged(t, n)
				apply(t, n, nodeFile, report.Unchanged)
			})
			t.Run("refused", func(t *testing.T) { refused(t, n) })
			t.Run("clock", func(t *testing.T) { clock(t, n) })
			t.Run("reboot", func(t *testing.T) {
				if err := n.Reboot(t.Context()); err != nil {
					t.Fatal(err)
				}
				t.Logf("up again in %s", n.BootTime().Round(time.Millisecond))
				live(t, n, values(), modules()...)
				expect(t, n, 1, "test", "-e", "/run/machineadm") // nothing of ours ran
				n.MustExec(t, "grep", "-qx", "ifb", "/etc/modules-load.d/machineadm-refused.conf")
				expect(t, n, 1, "test", "-e", "/sys/module/ifb")
				converged(t, n)
			})
			t.Run("power cut", func(t *testing.T) { powerCut(t, n, changes) })
		})
	}
}

func converged(t *testing.T, n *nodes.Node) {
	t.Helper()
	if out := expect(t, n, report.ExitOK, "machineadm", "plan", "--path", nodeFile).Stdout; !strings.Contains(out, "2 documents: 0 to change, 2 unchanged, 0 deferred") {
		t.Errorf("plan:\n%s", out)
	}
}

// refused: what the kernel or the administrator refuses fails with the reason, and none of the document's
// values stays.
func refused(t *testing.T, n *nodes.Node) {
	const path = "/run/refused.yaml"
	n.MustExec(t, "sh", "-c", "echo blacklist ifb >/etc/modprobe.d/denied.conf")
	for _, c := range []struct {
		name, spec string
		says       []string
	}{
		// More than its period, kernel.sched_rt_period_us.
		{"value", "parameters: {vm.admin_reserve_kbytes: 4096, kernel.msgmax: 16384, kernel.sched_rt_runtime_us: 2000000}", []string{"kernel.sched_rt_runtime_us", "invalid argument", "the previous values are restored"}},
		{"module", "modules: [no_such_module], parameters: {kernel.msgmax: 16384}", []string{"no_such_module", "spec.modules"}},
		{"key", "parameters: {kernel.msgmax: 16384, net.netfilter.nf_no_such_key: 1}", []string{"net.netfilter.nf_no_such_key", "ignoreMissing"}},
		// The next boot will be without it, as the subtest for that shows, so it must not be there now.
		{"denied module", "modules: [ifb], parameters: {kernel.msgmax: 16384}", []string{"ifb", "blacklist"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := n.MustExec(t, "cat", "/proc/sys/kernel/msgmax", "/proc/sys/vm/admin_reserve_kbytes").Stdout
			text := fmt.Sprintf("apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: refused}\nspec: {%s}\n", c.spec)
			if _, err := n.ExecInput(t.Context(), strings.NewReader(text), "sh", "-c", "umask 077; cat >"+path); err != nil {
				t.Fatal(err)
			}
			got := expect(t, n, report.ExitPrecondition, "machineadm", "apply", "--path", path)
			for _, want := range c.says {
				if !strings.Contains(got.Stderr, want) {
					t.Errorf("the error does not say %q:\n%s", want, got.Stderr)
				}
			}
			if now := n.MustExec(t, "cat", "/proc/sys/kernel/msgmax", "/proc/sys/vm/admin_reserve_kbytes").Stdout; now != before {
				t.Errorf("values of a refused document stayed: %q, before %q", now, before)
			}
			expect(t, n, 1, "test", "-e", "/etc/sysctl.d/99-machineadm-refused.conf")
			expect(t, n, 1, "test", "-e", "/sys/module/ifb")
		})
	}
	live(t, n, values(), modules()...)
	apply(t, n, nodeFile, report.Unchanged)
}
