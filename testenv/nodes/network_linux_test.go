package nodes_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
)

// ask sends a datagram to port 7 of a name and prints who answered what.
const ask = `
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
s.sendto(b"hello", (sys.argv[1], 7))
text, sender = s.recvfrom(100)
print(text.decode(), sender[0], end="")
`

// echo answers as its argument says.
const echo = `
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 7))
while True:
    s.sendto((sys.argv[1]).encode(), s.recvfrom(100)[1])
`

func TestNetwork(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	before := interfaces(t)
	network := nodes.NewNetwork(t, "n1", "n2", "server")
	n1 := nodes.Boot(t, nodes.Options{Suite: nodes.Bookworm, Network: network, Hostname: "n1"})
	n2 := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, Network: network, Hostname: "n2"})
	go echoes(network.ListenPacket(t, "server", 7), "the test")

	require.Equal(t, network.Address("n2"), n2.Address())
	require.Equal(t, "eth0\nlo\n", n1.MustExec(t, "ls", "/sys/class/net").Stdout)
	require.Equal(t, "n1\n", n1.MustExec(t, "hostname").Stdout)
	require.Equal(t, before, interfaces(t), "devices and addresses of the machine")
	meet := func() {
		t.Helper()
		n2.MustExec(t, "systemd-run", "--quiet", "python3", "-c", echo, "n2")
		answers(t, n1, "n2", "n2 "+n2.Address().String())
		answers(t, n1, "server", "the test "+network.Address("server").String())
		answers(t, n2, "server", "the test "+network.Address("server").String())
		// It stays over reboots of n2, because n1 caches it.
		cached := n1.MustExec(t, "ip", "neighbour", "show", network.Address("server").String()).Stdout
		require.Contains(t, cached, " lladdr 02:00:0a:4d:00:00 ")
	}
	meet()
	require.NoError(t, n2.Reboot(t.Context()))
	meet()
	n2.Crash()
	require.NoError(t, n2.Reboot(t.Context()))
	meet()
}

// Two networks with the same addresses are separate.
func TestNetworksAreSeparate(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	for _, name := range []string{"one", "two"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			network := nodes.NewNetwork(t, "node", "server")
			go echoes(network.ListenPacket(t, "server", 7), name)
			n := nodes.Boot(t, nodes.Options{Suite: nodes.Bookworm, Network: network})
			answers(t, n, "server", name+" 10.77.0.2")
		})
	}
}

// answers waits, because the server may have been started just now.
func answers(t *testing.T, from *nodes.Node, name, want string) {
	t.Helper()
	var got nodes.Result
	nodestest.Eventually(t, "an answer of "+name, func() bool {
		var err error
		got, err = from.Exec(t.Context(), "python3", "-c", ask, name)
		require.NoError(t, err)
		return got.ExitCode == 0
	})
	require.Equal(t, want, got.Stdout)
}

// echoes ends when the test closes its socket.
func echoes(conn net.PacketConn, answer string) {
	buffer := make([]byte, 100)
	for {
		_, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if _, err := conn.WriteTo([]byte(answer), from); err != nil {
			return
		}
	}
}

// interfaces lists the devices of the machine, each with its addresses.
func interfaces(t *testing.T) []string {
	t.Helper()
	devices, err := net.Interfaces()
	require.NoError(t, err)
	var all []string
	for _, d := range devices {
		addresses, err := d.Addrs()
		require.NoError(t, err)
		words := []string{d.Name}
		for _, a := range addresses {
			words = append(words, a.String())
		}
		all = append(all, strings.Join(words, " "))
	}
	return all
}

// What a network carries is recorded until the recording ends.
func TestCapture(t *testing.T) {
	t.Parallel()
	network := nodes.NewNetwork(t, "server")
	conn := network.ListenPacket(t, "server", 9)
	send := func(text string) {
		t.Helper()
		if _, err := conn.WriteTo([]byte(text), conn.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := conn.ReadFrom(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	send("before")
	stop := network.Capture(t)
	send("during")
	frames := string(stop())
	send("after")
	if strings.Contains(frames, "before") || !strings.Contains(frames, "during") || frames != string(stop()) {
		t.Errorf("recorded %q", frames)
	}
}

// TestForward: a node reaches servers of the test at the same addresses, until it boots again.
func TestForward(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		_, err = w.Write(append([]byte("the test got "), sent...))
		assert.NoError(t, err)
	}))
	t.Cleanup(server.Close)
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie})
	const get = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], b'hello', 5).read().decode(), end='')"
	n.Forward(t, server.Listener.Addr().String())
	require.Equal(t, "the test got hello", n.MustExec(t, "python3", "-c", get, server.URL).Stdout)
	metadata := n.Listen(t, "169.254.169.254:80")
	go func() { _ = http.Serve(metadata, server.Config.Handler) }() //nolint:gosec // ends with the listener
	require.Equal(t, "the test got hello", n.MustExec(t, "python3", "-c", get, "http://169.254.169.254/").Stdout)
	require.NoError(t, n.Reboot(t.Context()))
	for _, url := range []string{server.URL, "http://169.254.169.254/"} {
		got, err := n.Exec(t.Context(), "python3", "-c", get, url)
		require.NoError(t, err)
		require.Equal(t, 1, got.ExitCode, got.Stdout)
	}
}
