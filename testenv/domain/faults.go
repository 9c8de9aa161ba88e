package domain

import (
	"crypto/x509"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/testenv/authority"
)

// Each fault lasts until the result is called, or as long as the controller.

// Certify restarts the controller with a certificate that another authority, another name or an edit makes wrong.
func (c *Controller) Certify(t testing.TB, ca authority.Authority, name string, edits ...func(*x509.Certificate)) (undo func()) {
	t.Helper()
	c.install(t, ca, name, edits...)
	c.restart(t)
	return func() {
		c.install(t, c.CA, c.FQDN)
		c.restart(t)
	}
}

// install writes a certificate, for which samba's own one is no substitute: that has no name that Go accepts.
func (c *Controller) install(t testing.TB, ca authority.Authority, name string, edits ...func(*x509.Certificate)) {
	t.Helper()
	certificate, key := ca.Issue(t, name, edits...)
	for file, content := range map[string][]byte{"ca": ca.Certificate, "cert": certificate, "key": key} {
		c.run(t, string(content), "sh", "-c", "umask 077 && mkdir -p /var/lib/samba/private/tls && cat >/var/lib/samba/private/tls/"+file+".pem")
	}
}

// Skew restarts the controller with a clock that is off; the clocks of the node and of the machine are not.
func (c *Controller) Skew(t testing.TB, by time.Duration) (undo func()) {
	t.Helper()
	const dropIn = "/run/systemd/system/dc.service.d/skew.conf"
	const variables = "LD_PRELOAD=/usr/$LIB/faketime/libfaketimeMT.so.1 FAKETIME=%+ds FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1 " +
		"LDB_MODULES_DISABLE_DEEPBIND=1" // the modules of the directory would otherwise take the C library's time(2)
	c.run(t, fmt.Sprintf("[Service]\nEnvironment="+variables+"\n", int(by.Seconds())),
		"sh", "-c", "mkdir -p ${1%/*} && cat >$1 && systemctl daemon-reload", "sh", dropIn)
	c.restart(t)
	return func() {
		c.run(t, "", "sh", "-c", "rm "+dropIn+" && systemctl daemon-reload")
		c.restart(t)
	}
}

// Down stops the controller: its ports are closed.
func (c *Controller) Down(t testing.TB) (undo func()) {
	t.Helper()
	c.run(t, "", "systemctl", "stop", "dc")
	return func() { c.restart(t) }
}

// Cut applies rules of nft(8) to the packets that enter and leave the controller, one set at a time:
//
//	tcp dport 389 reject with tcp reset
//	udp dport 88 drop
//	tcp dport 389 quota over 3000 bytes drop	the rest of a join stays undone
//	tcp sport 389 quota over 3000 bytes drop	the rest of a join is done, and the machine does not learn it
func (c *Controller) Cut(t testing.TB, rules ...string) (undo func()) {
	t.Helper()
	var table strings.Builder
	table.WriteString("create table inet cut\ntable inet cut {\n")
	for chain, device := range map[string]string{"input": "iifname eth0 ", "output": "oifname eth0 "} {
		fmt.Fprintf(&table, "chain %s {\ntype filter hook %s priority 0\n", chain, chain)
		for _, rule := range rules {
			table.WriteString(device + rule + "\n")
		}
		table.WriteString("}\n")
	}
	c.run(t, table.String()+"}\n", "nft", "-f", "-")
	return func() { c.run(t, "", "nft", "delete", "table", "inet", "cut") }
}

// The sites of the domain. The controller is in the first; the second has no controller and no records in DNS.
const (
	ControllerSite = "Default-First-Site-Name"
	Branch         = "Branch"
)

// Subnet assigns the clients with these addresses to a site; without it a client has none.
func (c *Controller) Subnet(t testing.TB, addresses netip.Prefix, site string) (undo func()) {
	t.Helper()
	c.run(t, "", "samba-tool", "sites", "subnet", "create", addresses.String(), site)
	return func() { c.run(t, "", "samba-tool", "sites", "subnet", "remove", addresses.String()) }
}
