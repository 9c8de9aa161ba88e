package timesync

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
	"github.com/machineadm/machineadm/testenv/timeservers"
)

// oneStream names no provider.
const oneStream = "{servers: [{address: time}], waitForSync: {timeout: 1m, maxOffset: 1s}}"

// fromDHCP is a server that DHCP names, at every boot. Nothing answers there.
const fromDHCP = "10.77.0.250"

// dhcp leaves what the DHCP hooks of Debian's packages leave.
func dhcp(root string) error {
	const server = "server " + fromDHCP + ` iburst\n` // tmpfiles.d(5) has the escape
	const restrict = `restrict default kod nomodify noquery limited\nrestrict 127.0.0.1\nrestrict ::1\n`
	return write(root, "/usr/lib/tmpfiles.d/dhcp.conf", "d /run/chrony-dhcp\nd /run/ntpsec\n"+
		"f /run/chrony-dhcp/eth0.sources 0644 - - - "+server+"\n"+
		"f /run/ntpsec/ntp.conf.dhcp 0644 - - - "+restrict+server+"\n", 0o644)
}

// TestOneStream: one stream makes every daemon follow our server, and no other, also after a reboot.
//
//machineadm:core
func TestOneStream(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	names := []string{"time"}
	for _, suite := range nodes.Suites() {
		for _, daemon := range timeservers.Daemons() {
			names = append(names, string(daemon)+"."+string(suite))
		}
	}
	network := nodes.NewNetwork(t, names...)
	timeservers.Chronyd(t, network, "time", timeservers.Options{})
	for _, suite := range nodes.Suites() {
		for _, daemon := range timeservers.Daemons() {
			name := string(daemon) + "." + string(suite)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				n := start(t, suite, daemon, network, name, dhcp)
				if daemon != timeservers.Timesyncd { // its DHCP client would be systemd-networkd
					nodestest.Eventually(t, "the server of DHCP to be used", func() bool { return slices.Contains(n.sources(t), fromDHCP) })
				}
				done := n.apply(t, oneStream)
				require.Equal(t, provider(daemon), done.Provider)
				n.follows(t, network, "time")
				require.NoError(t, n.Reboot(t.Context()))
				n.follows(t, network, "time")
				n.unchanged(t, oneStream)
			})
		}
	}
}
