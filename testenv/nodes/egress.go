package nodes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Egress counts what a container sends to other machines, from its first boot on. Its network needs the name Gateway, which
// is that of no node: there the packets go, and nobody answers.
const (
	Gateway = "gateway"
	// egressRules has an element for each destination. The neighbours that IPv6 looks for by itself are none.
	egressRules = `table inet egress {
	set sent {
		type inet_proto . ipv4_addr . inet_service
		flags dynamic
		size 1000
	}
	counter others {}
	chain output {
		type filter hook output priority 0
		oifname "lo" return
		ip version 4 meta l4proto { tcp, udp } add @sent { meta l4proto . ip daddr . th dport } return
		meta l4proto != icmpv6 counter name others
	}
}
`
	egressUnit = `[Unit]
DefaultDependencies=no
Before=sysinit.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=nft -f /etc/egress.nft
ExecStart=ip route add default via %s
[Install]
WantedBy=sysinit.target
`
)

// EgressLayers have what CountEgress needs beyond the base system of a suite.
func EgressLayers(suite Suite) []Layer {
	if suite == Noble {
		return nil
	}
	return []Layer{Egress}
}

// CountEgress prepares a container of the network, which has EgressLayers, for Node.Egress.
func CountEgress(network *Network) func(root string) error {
	return func(root string) error {
		gateway := network.Address(Gateway)
		wants := filepath.Join(root, "etc/systemd/system/sysinit.target.wants")
		return errors.Join(
			os.MkdirAll(wants, 0o755),
			os.WriteFile(filepath.Join(root, "etc/egress.nft"), []byte(egressRules), 0o600),
			os.WriteFile(filepath.Join(root, "etc/systemd/system/egress.service"), fmt.Appendf(nil, egressUnit, gateway), 0o644),
			os.Symlink("../egress.service", filepath.Join(wants, "egress.service")),
			os.WriteFile(filepath.Join(root, "etc/resolv.conf"), fmt.Appendf(nil, "nameserver %s\n", gateway), 0o644), //nolint:gosec // read by all
		)
	}
}

// Egress is what the container has sent to other machines since its boot, such as "tcp . 10.77.0.2 . 80"; it is empty when that is nothing.
func (n *Node) Egress(t testing.TB) string {
	t.Helper()
	others := n.MustExec(t, "nft", "list", "counter", "inet", "egress", "others").Stdout
	if !strings.Contains(others, "packets 0 bytes 0") {
		return others
	}
	_, elements, _ := strings.Cut(n.MustExec(t, "nft", "list", "set", "inet", "egress", "sent").Stdout, "elements = {")
	elements, _, _ = strings.Cut(elements, "}")
	return strings.Join(strings.Fields(elements), " ")
}
