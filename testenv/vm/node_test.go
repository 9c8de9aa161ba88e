package vm

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
)

// TestNode: a virtual machine passes the tests of every node, and has a kernel and a disk of its own.
func TestNode(t *testing.T) {
	needs.Tier(t, needs.VM)
	needs.Campaign(t) // of the test environment alone
	for suite, prepare := range map[nodes.Suite]func(string) error{nodes.Bookworm: nodestest.RebootsItself, nodes.Trixie: nil} {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			n := nodes.Boot(t, nodes.Options{Suite: suite, VM: true, Hostname: "first", Prepare: prepare})
			if prepare != nil {
				t.Run("rebooted itself", func(t *testing.T) { nodestest.RebootedItself(t, n) })
			}
			t.Run("exec", func(t *testing.T) { nodestest.Exec(t, n) })
			t.Run("inside", func(t *testing.T) { nodestest.ExecIsInside(t, n) })
			t.Run("stdin", func(t *testing.T) { nodestest.ExecInput(t, n) })
			t.Run("at once", func(t *testing.T) { nodestest.ExecAtOnce(t, n) })
			t.Run("cancel", func(t *testing.T) { nodestest.ExecCancel(t, n) })
			t.Run("copy", func(t *testing.T) { nodestest.Copy(t, n) })
			t.Run("copy over a running program", func(t *testing.T) { nodestest.CopyOverARunningProgram(t, n) })
			t.Run("own kernel", func(t *testing.T) { ownKernel(t, n) })
			t.Run("reboot", func(t *testing.T) { nodestest.Reboot(t, n) })
			t.Run("crash", func(t *testing.T) { crash(t, n) })
			t.Run("panic", func(t *testing.T) { panics(t, n) })
			t.Run("stop", func(t *testing.T) { stop(t, n) })
		})
	}
}

func ownKernel(t *testing.T, n *nodes.Node) {
	for script, want := range map[string]string{
		"cat /proc/1/comm":            "systemd",
		"systemctl is-system-running": "running",
		"hostname":                    "first",
		"ls /sys/class/net":           "lo",
		"ls /etc/resolv.conf /etc/fstab /etc/apt/sources.list 2>/dev/null; true": "",
		"test -d /lib/modules/$(uname -r) && echo yes":                           "yes",
		"systemctl is-active cloud-init.target; true":                            "inactive",
	} {
		if got := strings.TrimSpace(n.MustExec(t, "sh", "-c", script).Stdout); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	// Values that no other test uses, and that are harmless if they reach the host by a defect.
	for key, value := range map[string]string{"vm/swappiness": "37\n", "kernel/msgmnb": "16387\n", "net/core/somaxconn": "4321\n"} {
		before, err := os.ReadFile("/proc/sys/" + key)
		if err != nil {
			t.Fatal(err)
		}
		n.MustExec(t, "sh", "-c", "echo "+strings.TrimSpace(value)+" >/proc/sys/"+key)
		if got := n.MustExec(t, "cat", "/proc/sys/"+key).Stdout; got != value {
			t.Errorf("%s: %q", key, got)
		}
		if now, err := os.ReadFile("/proc/sys/" + key); err != nil || string(now) != string(before) {
			t.Errorf("%s of the host changed from %q to %q, %v", key, before, now, err)
		}
	}
}

// crash: a power cut loses what was only written, and keeps what was synced.
func crash(t *testing.T, n *nodes.Node) {
	// Both count, and print each number after writing it to the file.
	const count = `i=0; while i=$((i+1)); do echo $i >>"$1"; $2; echo $i; done`
	printed := map[string]string{}
	var writers sync.WaitGroup
	var mu sync.Mutex
	n.MustExec(t, "sh", "-c", "touch /var/lib/synced /var/lib/unsynced; sync -f /var/lib")
	for file, flush := range map[string]string{"/var/lib/synced": "sync /var/lib/synced", "/var/lib/unsynced": ":"} {
		writers.Go(func() {
			got, err := n.Exec(t.Context(), "sh", "-c", count, "sh", file, flush)
			if err == nil || !strings.Contains(err.Error(), "the node is off") {
				t.Errorf("the writer ended by itself: %+v, %v", got, err)
			}
			mu.Lock()
			defer mu.Unlock()
			printed[file] = got.Stdout
		})
	}
	n.MustExec(t, "sh", "-c", "until test $(wc -l </var/lib/synced) -ge 20 && test $(wc -l </var/lib/unsynced) -ge 20; do sleep 0.1; done")
	nodestest.Crash(t, n)
	writers.Wait()
	t.Logf("up again in %s", n.BootTime().Round(time.Millisecond))
	kept := func(file string) int {
		t.Helper()
		data, err := n.CopyOut(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(data), "\n")
	}
	if said, is := strings.Count(printed["/var/lib/synced"], "\n"), kept("/var/lib/synced"); is < said {
		t.Errorf("%d lines were synced, and %d are there after the power cut", said, is)
	}
	if said, is := strings.Count(printed["/var/lib/unsynced"], "\n"), kept("/var/lib/unsynced"); is >= said {
		t.Errorf("%d lines were written without a sync, and all are there: this was no power cut", said)
	}
	if got := n.MustExec(t, "dmesg").Stdout; !strings.Contains(got, "recovery complete") {
		t.Errorf("the file system did not recover from its journal:\n%s", got)
	}
}

// panics: a machine is off after a kernel panic, and does not restart.
func panics(t *testing.T, n *nodes.Node) {
	n.MustExec(t, "sync")
	if r, err := n.Exec(t.Context(), "sh", "-c", "echo c >/proc/sysrq-trigger; sleep 600"); err == nil || !strings.Contains(err.Error(), "the node is off") {
		t.Fatalf("the command that made the kernel panic: %+v, %v", r, err)
	}
	if err := n.Settle(t.Context()); err == nil || !strings.Contains(err.Error(), "the node is off") {
		t.Errorf("after a panic: %v", err)
	}
}

func stop(t *testing.T, n *nodes.Node) {
	if len(nodestest.Traces(t, n.Name())) == 0 {
		t.Fatal("a machine that is not freed leaves no traces: this test cannot fail")
	}
	if err := n.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := nodestest.Traces(t, n.Name()); len(left) > 0 {
		t.Errorf("left of the node:\n%s", strings.Join(left, "\n"))
	}
	if _, err := n.Exec(t.Context(), "true"); err == nil {
		t.Error("a stopped node still runs commands")
	}
}
