package nodes_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
)

func TestBoot(t *testing.T) {
	t.Parallel()
	for suite, version := range map[nodes.Suite]string{nodes.Bookworm: "12", nodes.Trixie: "13"} {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			n := nodes.Boot(t, nodes.Options{Suite: suite, Hostname: "first"})
			for _, c := range []struct{ what, script, want string }{
				{"release", `. /etc/os-release; echo "$ID $VERSION_ID"`, "debian " + version},
				{"PID 1", "cat /proc/1/comm", "systemd"},
				{"state", "systemctl is-system-running", "running"},
				{"hostname", "hostname", "first"},
				{"network devices", "ls /sys/class/net", "lo"},
				{"loopback", "ip -4 -oneline address show dev lo | awk '{print $4}'", "127.0.0.1/8"},
				{"traces of the building machine", "ls /etc/resolv.conf /etc/fstab /etc/apt/sources.list 2>/dev/null; true", ""},
				{"cloud-init without a seed", "systemctl is-active cloud-init.target; true", "inactive"},
			} {
				if got := strings.TrimSpace(n.MustExec(t, "sh", "-c", c.script).Stdout); got != c.want {
					t.Errorf("%s: %q, want %q", c.what, got, c.want)
				}
			}
		})
	}
}

func TestNodesAreSeparate(t *testing.T) {
	t.Parallel()
	a := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie})
	b := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie})
	a.MustExec(t, "touch", "/root/only-in-a")
	if r, err := b.Exec(t.Context(), "test", "-e", "/root/only-in-a"); err != nil || r.ExitCode != 1 {
		t.Errorf("a file of one node in the other: exit %d, %v", r.ExitCode, err)
	}
	for _, identity := range []string{"/etc/machine-id", "/proc/sys/kernel/random/boot_id"} {
		inA, inB := a.MustExec(t, "cat", identity).Stdout, b.MustExec(t, "cat", identity).Stdout
		if inA == inB || len(inA) < 32 {
			t.Errorf("%s: %q and %q", identity, inA, inB)
		}
	}
	if inA, inB := netNS(t, a), netNS(t, b); inA == inB || inA == readlink(t, "/proc/self/ns/net") {
		t.Errorf("network namespaces: %s and %s", inA, inB)
	}
}

func TestPrepare(t *testing.T) {
	t.Parallel()
	var steps []string
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, Prepare: nodes.InOrder(
		func(root string) error {
			steps = append(steps, "unit")
			unit := "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'cat /etc/prepared >/run/seen'\n[Install]\nWantedBy=multi-user.target\n"
			if err := os.WriteFile(filepath.Join(root, "etc/systemd/system/prepared.service"), []byte(unit), 0o644); err != nil {
				return err
			}
			wants := filepath.Join(root, "etc/systemd/system/multi-user.target.wants/prepared.service")
			return os.Symlink("/etc/systemd/system/prepared.service", wants)
		},
		func(root string) error {
			steps = append(steps, "file")
			return os.WriteFile(filepath.Join(root, "etc/prepared"), []byte("before the first boot"), 0o644)
		},
	)})
	if got := n.MustExec(t, "cat", "/run/seen").Stdout; got != "before the first boot" {
		t.Errorf("the unit saw %q", got)
	}
	if got := strings.Join(steps, " "); got != "unit file" {
		t.Errorf("steps ran as %q", got)
	}
}

func TestInOrderEndsAtTheFirstError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	later := false
	err := nodes.InOrder(
		func(string) error { return broken },
		func(string) error { later = true; return nil },
	)(t.TempDir())
	if !errors.Is(err, broken) || later {
		t.Errorf("error %v, later step ran: %v", err, later)
	}
}

func TestReboot(t *testing.T) {
	t.Parallel()
	for _, suite := range nodes.Suites() {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			nodestest.Reboot(t, nodes.Boot(t, nodes.Options{Suite: suite}))
		})
	}
}

func TestCrash(t *testing.T) {
	t.Parallel()
	nodestest.Crash(t, nodes.Boot(t, nodes.Options{Suite: nodes.Bookworm}))
}

// A node that reboots itself on its way up is started again, once more and no further.
func TestSelfReboot(t *testing.T) {
	t.Parallel()
	nodestest.RebootedItself(t, nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, Prepare: nodestest.RebootsItself}))
}

func TestNoWait(t *testing.T) {
	t.Parallel()
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, NoWait: true})
	n.Crash() // in the middle of the first boot
	if err := n.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.MustExec(t, "systemctl", "is-system-running")
}

// net.* values last until the reboot, and in the node alone; everything else under /proc/sys is the host's and read-only.
func TestSysctl(t *testing.T) {
	t.Parallel()
	require.Root(t)
	keys := []string{"net/ipv4/ip_forward", "net/ipv4/conf/all/log_martians", "net/ipv6/conf/all/forwarding", "net/core/somaxconn"}
	before := map[string]string{}
	for _, k := range keys {
		before[k] = readFile(t, "/proc/sys/"+k)
	}
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Bookworm})
	for _, k := range keys {
		initial := n.MustExec(t, "cat", "/proc/sys/"+k).Stdout
		n.MustExec(t, "sysctl", "-q", "-w", k+"=77")
		// As a service too: it has the node's capabilities, not the test process's.
		n.MustExec(t, "systemd-run", "--quiet", "--wait", "sysctl", "-q", "-w", k+"=1")
		if got := n.MustExec(t, "cat", "/proc/sys/"+k).Stdout; got != "1\n" || initial == got {
			t.Errorf("%s in the node: %q, at first %q", k, got, initial)
		}
		if now := readFile(t, "/proc/sys/"+k); now != before[k] {
			t.Errorf("%s of the host changed from %q to %q", k, before[k], now)
		}
	}
	if r, err := n.Exec(t.Context(), "sh", "-c", "echo 1 >/proc/sys/kernel/printk"); err != nil || r.ExitCode == 0 {
		t.Errorf("the host's kernel.printk could be written: exit %d, %v", r.ExitCode, err)
	}
	if err := n.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if got := n.MustExec(t, "cat", "/proc/sys/"+k).Stdout; got == "1\n" {
			t.Errorf("%s outlived the reboot", k)
		}
	}
}

func netNS(t *testing.T, n *nodes.Node) string {
	t.Helper()
	return strings.TrimSpace(n.MustExec(t, "readlink", "/proc/self/ns/net").Stdout)
}

func readlink(t *testing.T, path string) string {
	t.Helper()
	target, err := os.Readlink(path)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
