package nodes

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Network connects the nodes of one test: a bridge in a network namespace of its own, the hub. Nothing leads out of it,
// neither to the machine nor to another test's network, so that all networks have the same addresses.
//
// Each name has an address, and every node resolves all of them. A name is a node's, see Options.Network, or the name of
// a server within the test itself, see ListenPacket.
type Network struct {
	inst  instance
	names []string
	tb    testing.TB
}

// NewNetwork makes a network with these names. It is removed when the test ends, however it ends, like a node.
func NewNetwork(t testing.TB, names ...string) *Network {
	t.Helper()
	n := &Network{names: names, tb: t}
	if err := checkNames(names); err != nil {
		t.Fatalf("nodes.NewNetwork: %v", err)
	}
	if err := n.assemble(t); err != nil {
		t.Fatalf("nodes.NewNetwork: %v", err)
	}
	return n
}

// checkNames refuses what would not be one line each in hosts(5), or more names than addresses.
func checkNames(names []string) error {
	if len(names) == 0 || len(names) > maxNames {
		return fmt.Errorf("%d names: a network has 1 to %d", len(names), maxNames)
	}
	for i, name := range names {
		if name == "" || name == "localhost" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
			return fmt.Errorf("name %q: lower-case letters, digits, '-' and '.' are allowed", name)
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("name %q is given twice", name)
		}
	}
	return nil
}

const maxNames = 250

// member is what has a name of the network. Its hardware address stays over reboots: the other nodes cache it.
type member struct {
	address  netip.Addr
	hardware string
	port     string // its device in the hub
}

func (n *Network) member(name string) (member, error) {
	i := slices.Index(n.names, name)
	if i < 0 {
		return member{}, fmt.Errorf("the network has no name %q, only %q", name, n.names)
	}
	host := byte(i + 1)
	return member{
		address:  netip.AddrFrom4([4]byte{10, 77, 0, host}),
		hardware: fmt.Sprintf("02:00:0a:4d:00:%02x", host),
		port:     fmt.Sprintf("port%d", host),
	}, nil
}

// Address returns the address of one of the network's names.
func (n *Network) Address(name string) netip.Addr {
	n.tb.Helper()
	m, err := n.member(name)
	if err != nil {
		n.tb.Fatal(err)
	}
	return m.address
}

// ListenPacket opens a UDP port at the address of a name that no node has. It is closed when the test ends.
func (n *Network) ListenPacket(t testing.TB, name string, port uint16) net.PacketConn {
	t.Helper()
	m, err := n.member(name)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := n.listenPacket(t.Context(), m, port)
	if err != nil {
		t.Fatalf("listen as %s, UDP port %d: %v", name, port, err)
	}
	t.Cleanup(func() { conn.Close() }) //nolint:errcheck // the test may have closed it
	return conn
}

// Capture records every frame that goes through the network from now on, one after the other and some of them twice. The
// result ends the recording and returns it, with all that was sent before.
func (n *Network) Capture(t testing.TB) func() []byte {
	t.Helper()
	c, err := n.openCapture()
	if err != nil {
		t.Fatalf("capture: %v", err)
	}
	stop := sync.OnceValues(c.stop)
	t.Cleanup(func() { _, _ = stop() })
	return func() []byte {
		t.Helper()
		frames, err := stop()
		if err != nil {
			t.Fatalf("capture: %v", err)
		}
		return frames
	}
}

// hosts appends the network's names to a node's hosts(5).
func (n *Network) hosts(root string) error {
	var lines strings.Builder
	for _, name := range n.names {
		m, err := n.member(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s %s\n", m.address, name)
	}
	return appendTo(filepath.Join(root, "etc/hosts"), lines.String())
}

func appendTo(path, text string) (err error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
