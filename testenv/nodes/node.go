package nodes

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Node is one booted machine. It belongs to the test that booted it and is gone when that test ends.
type Node struct {
	machine backend
	inst    instance
	opts    Options
	tb      testing.TB
	boot    time.Duration
}

// maxSelfReboots bounds how often a node may reboot itself before it is up: a loop is an error, not a hang.
const maxSelfReboots = 5

// teardownTimeout bounds the freeing of a node's resources, which normally takes milliseconds.
const teardownTimeout = 30 * time.Second

// Boot starts a node and waits until its boot is finished: every unit started or failed, cloud-init included when it
// is seeded. Without root or the tools it skips the test (under CI=true: fails it). A cold cache is filled first,
// which takes minutes. The node is freed when the test ends, however it ends; what an earlier, killed test run left
// behind is removed here.
func Boot(t testing.TB, o Options) *Node {
	t.Helper()
	o, err := o.checked()
	if err != nil {
		t.Fatalf("nodes.Boot: %v", err)
	}
	prerequisites(t, o)
	n, assemble, err := newNode(t, o)
	if err != nil {
		t.Fatalf("nodes.Boot %s: %v", o.Suite, err)
	}
	t.Cleanup(n.cleanup)
	if err := assemble(); err != nil {
		t.Fatalf("nodes.Boot %s: %v", o.Suite, err)
	}
	if err := n.powerOn(t.Context()); err != nil {
		t.Fatalf("nodes.Boot %s: %v", o.Suite, err)
	}
	t.Logf("node %s (%s) booted in %s", n.inst.name, o.Suite, n.boot.Round(time.Millisecond))
	return n
}

// Name identifies the node among everything that its machine runs: control groups, mounts and directories carry it.
func (n *Node) Name() string { return n.inst.name }

// Address is the node's address in its network.
func (n *Node) Address() netip.Addr { return n.opts.Network.Address(n.opts.Hostname) }

// BootTime is how long the last start took until the boot was finished (with NoWait: until PID 1 ran).
func (n *Node) BootTime() time.Duration { return n.boot }

// Settle waits until the boot is finished. A node that reboots itself meanwhile is started again, as a machine would.
func (n *Node) Settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, n.opts.BootTimeout)
	defer cancel()
	reboots := 0
	// Only looks from outside: a command inside would hold up the shutdown of a node that reboots itself, see Exec.
	err := poll(ctx, pollInterval, "the end of the boot", func() (bool, error) {
		switch n.machine.state() {
		case poweredOff:
			return false, errOff
		case rebooting:
			if reboots++; reboots > maxSelfReboots {
				return false, fmt.Errorf("the node rebooted itself %d times", reboots)
			}
			return false, n.machine.start(ctx, n.consolePath())
		case booted:
			return true, nil
		default:
			return false, nil
		}
	})
	if err != nil {
		return err
	}
	return n.checkBoot(ctx)
}

// checkBoot refuses a boot that ended in the emergency shell and shows the units that failed in any other.
func (n *Node) checkBoot(ctx context.Context) error {
	if n.opts.Init != "" {
		return nil
	}
	got, err := n.Exec(ctx, "systemctl", "is-system-running")
	if err != nil {
		return err
	}
	switch state := strings.TrimSpace(got.Stdout); state {
	case "running":
		return nil
	case "maintenance":
		return errors.New("the node is in rescue or emergency mode")
	default:
		return n.logFailedUnits(ctx, state)
	}
}

func (n *Node) logFailedUnits(ctx context.Context, state string) error {
	got, err := n.Exec(ctx, "systemctl", "list-units", "--failed", "--plain", "--no-legend", "--no-pager")
	if err != nil {
		return err
	}
	n.tb.Logf("node %s is %s, failed units:\n%s", n.inst.name, state, got.Stdout)
	return nil
}

// Crash is a power cut: everything in the node is killed at once. Reboot starts it again. A container finds its files
// as they were written, synced or not, because the kernel is the host's. A virtual machine finds what it had synced, and
// its file system recovers from the journal.
func (n *Node) Crash() {
	n.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), teardownTimeout)
	defer cancel()
	if err := n.machine.cut(ctx); err != nil {
		n.tb.Errorf("crash %s: %v", n.inst.name, err)
	}
}

// Reboot boots the same files again and waits until the boot is finished: after an orderly shutdown when the node is
// on, at once when it crashed or went down by itself.
func (n *Node) Reboot(ctx context.Context) error {
	if err := n.goDown(ctx, "reboot"); err != nil {
		return err
	}
	return n.powerOn(ctx)
}

// Stop shuts the node down in order, then frees everything it holds, files included. The node cannot be used afterwards.
// It is freed also after an error of the shutdown.
func (n *Node) Stop(ctx context.Context) error {
	down := n.goDown(ctx, "poweroff")
	return errors.Join(down, n.free())
}

func (n *Node) powerOn(ctx context.Context) error {
	began := time.Now()
	if err := n.machine.start(ctx, n.consolePath()); err != nil {
		return err
	}
	if !n.opts.NoWait {
		if err := n.Settle(ctx); err != nil {
			return err
		}
	}
	n.boot = time.Since(began)
	return nil
}

// goDown asks systemd for the transition and waits until the machine is off.
func (n *Node) goDown(ctx context.Context, verb string) error {
	if !n.machine.state().on() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, n.opts.BootTimeout)
	defer cancel()
	// The command may die with the node that it takes down, so only the machine's state counts.
	got, asked := n.Exec(ctx, "systemctl", "--no-wall", verb)
	err := poll(ctx, pollInterval, "the node to go down", func() (bool, error) {
		return !n.machine.state().on(), nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", verb, err), asked, got.failure())
	}
	return nil
}

func (n *Node) consolePath() string { return filepath.Join(n.inst.dir, "console.log") }

func (n *Node) cleanup() {
	if n.tb.Failed() {
		n.logEvidence()
	}
	if err := n.free(); err != nil {
		n.tb.Errorf("free node %s: %v", n.inst.name, err)
	}
}

// free must not depend on the test's context, which is over when cleanup runs.
func (n *Node) free() error {
	ctx, cancel := context.WithTimeout(context.Background(), teardownTimeout)
	defer cancel()
	if err := n.machine.release(ctx); err != nil {
		return err
	}
	return os.RemoveAll(n.inst.dir)
}

func (n *Node) logEvidence() {
	if console, err := os.ReadFile(n.consolePath()); err == nil {
		n.tb.Logf("console of %s:\n%s", n.inst.name, lastLines(string(console), 150))
	}
	if !n.machine.state().on() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if got, err := n.Exec(ctx, "journalctl", "--boot", "--lines=150", "--no-pager", "--quiet"); err == nil {
		n.tb.Logf("journal of %s:\n%s", n.inst.name, got.Stdout)
	}
}

// lastLines returns the end of a long log.
func lastLines(s string, most int) string {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(s, "\r", ""), "\n"), "\n")
	if len(lines) > most {
		lines = append([]string{fmt.Sprintf("(%d lines before)", len(lines)-most)}, lines[len(lines)-most:]...)
	}
	return strings.Join(lines, "\n")
}
