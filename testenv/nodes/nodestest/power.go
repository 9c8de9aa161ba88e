package nodestest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/testenv/nodes"
)

// markOrderlyStop starts a service that leaves a file when, and only when, it is stopped in order.
func markOrderlyStop(t *testing.T, n *nodes.Node) {
	t.Helper()
	n.MustExec(t, "sh", "-c", "rm -f /var/lib/goodbye; sync /var/lib")
	n.MustExec(t, "systemd-run", "--unit=goodbye", "sh", "-c", "trap 'echo stopped >/var/lib/goodbye; exit' TERM; while :; do sleep 1; done")
}

// Reboot checks an orderly reboot: services are stopped, the disk stays, volatile state is lost.
func Reboot(t *testing.T, n *nodes.Node) {
	n.MustExec(t, "sh", "-c", "echo kept >/var/lib/kept; echo lost >/run/lost")
	markOrderlyStop(t, n)
	boot := n.MustExec(t, "cat", "/proc/sys/kernel/random/boot_id").Stdout
	identity := n.MustExec(t, "cat", "/etc/machine-id").Stdout
	if err := n.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("up again in %s", n.BootTime().Round(time.Millisecond))
	Files(t, n, map[string]string{"/var/lib/kept": "kept\n", "/var/lib/goodbye": "stopped\n", "/run/lost": Missing})
	if now := n.MustExec(t, "cat", "/proc/sys/kernel/random/boot_id").Stdout; now == boot {
		t.Error("the boot id is the same after a reboot")
	}
	if now := n.MustExec(t, "cat", "/etc/machine-id").Stdout; now != identity {
		t.Errorf("machine-id changed from %q to %q", identity, now)
	}
}

// Crash checks a power cut: nothing is stopped in order, nothing runs afterwards, and the disk starts again.
func Crash(t *testing.T, n *nodes.Node) {
	n.MustExec(t, "sh", "-c", "echo kept >/var/lib/kept; sync /var/lib/kept /var/lib")
	markOrderlyStop(t, n)
	running := make(chan error)
	go func() {
		_, err := n.Exec(t.Context(), "sh", "-c", "touch /run/running; sleep 600")
		running <- err
	}()
	n.MustExec(t, "sh", "-c", "until test -e /run/running; do sleep 0.05; done")

	n.Crash()
	if err := <-running; err == nil {
		t.Error("a command that the power cut ended reports no error")
	}
	Eventually(t, "the node's processes to end", func() bool { return len(Processes(t, n.Name())) == 0 })
	if _, err := n.Exec(t.Context(), "true"); err == nil || !strings.Contains(err.Error(), "the node is off") {
		t.Errorf("a command on a node without power: %v", err)
	}

	if err := n.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	Files(t, n, map[string]string{"/var/lib/kept": "kept\n", "/var/lib/goodbye": Missing})
}

// RebootsItself prepares a node that reboots itself once on its way up, and RebootedItself checks that it did.
func RebootsItself(root string) error {
	const once = "[Unit]\nConditionPathExists=!/var/lib/rebooted\n[Service]\nType=oneshot\n" +
		"ExecStart=/bin/sh -c 'echo yes >/var/lib/rebooted; systemctl --no-block reboot'\n"
	if err := os.WriteFile(filepath.Join(root, "etc/systemd/system/once.service"), []byte(once), 0o644); err != nil {
		return err
	}
	return os.Symlink("/etc/systemd/system/once.service", filepath.Join(root, "etc/systemd/system/multi-user.target.wants/once.service"))
}

// RebootedItself follows a boot with RebootsItself.
func RebootedItself(t *testing.T, n *nodes.Node) {
	Files(t, n, map[string]string{"/var/lib/rebooted": "yes\n"})
	if got := strings.TrimSpace(n.MustExec(t, "sh", "-c", "journalctl --list-boots --quiet --no-pager | grep -c .").Stdout); got != "2" {
		t.Errorf("boots in the journal: %s, want 2", got)
	}
}

// Missing is the content of a missing file for Files.
const Missing = "(missing)"

// Files compares files of the node.
func Files(t *testing.T, n *nodes.Node, files map[string]string) {
	t.Helper()
	for path, want := range files {
		got, err := n.CopyOut(t.Context(), path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			got = []byte(Missing)
		case err != nil:
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
