package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/require"
)

const (
	bridge     = "br0"  // the device in the hub that the nodes' devices are ports of
	device     = "eth0" // the node's end of its connection
	prefixBits = 24

	// bridgeHardware is an address that no member has. The kernel would otherwise give the bridge that of one of its ports,
	// which change with each boot of a node, while the other nodes send to the address in their caches for up to 45 s.
	bridgeHardware = "02:00:0a:4d:00:00"
)

func (m member) prefix() string { return netip.PrefixFrom(m.address, prefixBits).String() }

// netNS is the path at which the namespace of a network or of a node is kept.
func (i instance) netNS() string { return filepath.Join(i.dir, "netns") }

// assemble makes the hub. Its traces on the machine are like a node's, so that it is also cleaned up like one.
func (n *Network) assemble(t testing.TB) error {
	t.Helper()
	require.Root(t)
	require.Tool(t, "ip")
	store, err := openCache()
	if err != nil {
		return err
	}
	if n.inst, err = store.newInstance(); err != nil {
		return err
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), teardownTimeout)
		defer cancel()
		if err := errors.Join(reclaim(ctx, n.inst), os.RemoveAll(n.inst.dir)); err != nil {
			t.Errorf("remove network %s: %v", n.inst.name, err)
		}
	})
	if err := bindNewNetNS(n.inst.netNS()); err != nil {
		return err
	}
	ctx := t.Context()
	return inNetNS(n.inst.netNS(), func() error {
		return errors.Join(
			ip(ctx, "link", "set", "lo", "up"),
			ip(ctx, "link", "add", bridge, "address", bridgeHardware, "type", "bridge"),
			ip(ctx, "link", "set", bridge, "up"),
		)
	})
}

// connect gives a namespace its device on the bridge.
func (n *Network) connect(ctx context.Context, name, netNS string) error {
	m, err := n.member(name)
	if err != nil {
		return err
	}
	err = inNetNS(n.inst.netNS(), func() error {
		return errors.Join(
			ip(ctx, "link", "add", m.port, "type", "veth", "peer", "name", device, "address", m.hardware, "netns", netNS),
			ip(ctx, "link", "set", m.port, "master", bridge, "up"),
		)
	})
	if err != nil {
		return err
	}
	return inNetNS(netNS, func() error {
		return errors.Join(
			ip(ctx, "address", "add", m.prefix(), "dev", device),
			ip(ctx, "link", "set", device, "up"),
		)
	})
}

// disconnect removes the device of an earlier connect. The kernel does so itself when the namespace of the other end is
// gone, but some time later, when the next device needs the name.
func (n *Network) disconnect(ctx context.Context, name string) error {
	m, err := n.member(name)
	if err != nil {
		return err
	}
	return inNetNS(n.inst.netNS(), func() error { return ip(ctx, "link", "delete", m.port) })
}

// Join connects the network namespace of the calling thread with the network until the test ends, under a name that no node has. The test
// and the processes that it starts then reach the nodes, and the nodes reach them. The namespace is one of the test, not the one of the
// machine: see testenv/management.
func (n *Network) Join(t testing.TB, name string) {
	t.Helper()
	// A descriptor, because /proc/PID/ns/net is the namespace of the main thread, which may be in another one for a moment.
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := n.connect(t.Context(), name, fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), own.Fd())); err != nil {
		t.Fatalf("join the network as %s: %v", name, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), teardownTimeout)
		defer cancel()
		if err := n.disconnect(ctx, name); err != nil {
			t.Errorf("leave the network: %v", err)
		}
	})
}

func (n *Network) listenPacket(ctx context.Context, m member, port uint16) (conn net.PacketConn, err error) {
	err = inNetNS(n.inst.netNS(), func() error {
		if err := ip(ctx, "address", "replace", m.prefix(), "dev", bridge); err != nil {
			return err
		}
		conn, err = new(net.ListenConfig).ListenPacket(ctx, "udp4", netip.AddrPortFrom(m.address, port).String())
		return err
	})
	return conn, err
}

// connection is a node's place in a network; the zero value is none.
type connection struct {
	network *Network
	name    string
	made    bool
}

// renew gives the node a new network namespace for each start, with its connection: network settings must not outlive a boot.
func (c *connection) renew(ctx context.Context, netNS string) error {
	if c.made {
		// Before the old namespace is unmounted: as long as it is there, so is the device.
		if err := c.network.disconnect(ctx, c.name); err != nil {
			return err
		}
		c.made = false
	}
	if err := unbindNetNS(netNS); err != nil {
		return err
	}
	if err := bindNewNetNS(netNS); err != nil {
		return err
	}
	if c.network == nil {
		return nil
	}
	if err := c.network.connect(ctx, c.name, netNS); err != nil {
		return err
	}
	c.made = true
	return nil
}

func inNetNS(path string, work func() error) error {
	return inNamespace(path, "/proc/thread-self/ns/net", unix.CLONE_NEWNET, work)
}

// ip runs ip(8), which acts on the namespace of the calling thread.
func ip(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "ip", args...)
	cmd.Env = []string{"PATH=" + nodePath, "LANG=C.UTF-8"}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %q: %w: %s", args, err, bytes.TrimSpace(out))
	}
	return nil
}
