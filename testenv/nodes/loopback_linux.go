package nodes

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
)

// Listen opens a TCP port at an address of a container's loopback device, which gets the address if it is not of 127.0.0.0/8. Both end
// with the boot. The test answers.
func (n *Node) Listen(t testing.TB, address string) net.Listener {
	t.Helper()
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		t.Fatal(err)
	}
	var listener net.Listener
	err = inNetNS(n.inst.netNS(), func() (err error) {
		add := []string{"address", "replace", at.Addr().String(), "dev", "lo"}
		if at.Addr().Is6() {
			add = append(add, "nodad") // it is usable at once
		}
		if !at.Addr().IsLoopback() {
			if err := ip(t.Context(), add...); err != nil {
				return err
			}
		}
		listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		return err
	})
	if err != nil {
		t.Fatalf("listen in node %s: %v", n.Name(), err)
	}
	t.Cleanup(func() { listener.Close() }) //nolint:errcheck // the test may have closed it
	return listener
}

// Forward lets a container reach TCP servers of the test until its next boot: they have the same addresses in both.
func (n *Node) Forward(t testing.TB, addresses ...string) {
	t.Helper()
	for _, address := range addresses {
		listener := n.Listen(t, address)
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil { // the test has ended
					return
				}
				go forward(t.Context(), conn, address)
			}
		}()
	}
}

// forward ends when both ends have sent everything. Why a connection breaks, neither side learns, as in any network.
func forward(ctx context.Context, node net.Conn, address string) {
	defer node.Close() //nolint:errcheck // its end is what counts
	server, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // its end is what counts
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_ = to.(*net.TCPConn).CloseWrite() //nolint:errcheck // both are of TCP
	}
	both.Go(func() { pass(server, node) })
	both.Go(func() { pass(node, server) })
	both.Wait()
}
