package domainjoin

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/domain"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// TestRenewedBySSSD: sssd renews keys that are too old by its own default, and a plan accepts the new ones. The test makes the keys old
// in the domain, and lets sssd look after a second instead of after minutes.
func TestRenewedBySSSD(t *testing.T) {
	t.Parallel()
	network := nodes.NewNetwork(t, "dc1", "node-3")
	c := domain.Start(t, network, "dc1")
	m := newMachine(t, c, network, "node-3")
	const spec = unit + "  sssd: {manage: true}\n"
	m.applied(t, spec, credentials(domain.Joiner()))
	m.joined(t)
	before := c.Computer(t, "NODE-3")
	old := "dn: " + before["distinguishedName"][0] + "\nchangetype: modify\nreplace: pwdLastSet\npwdLastSet: 0\n"
	c.MustExec(t, "sh", "-c", "printf '"+strings.ReplaceAll(old, "\n", `\n`)+"' | ldbmodify -H /var/lib/samba/private/sam.ldb")
	m.write(t, "/etc/sssd/conf.d/zz-test.conf", "[domain/"+domain.Name+"]\nad_machine_account_password_renewal_opts = 86400:1\n")
	m.MustExec(t, "sh", "-c", "chmod 600 /etc/sssd/conf.d/zz-test.conf && systemctl restart sssd")
	await(t, "new keys in the domain", func() bool {
		return c.Computer(t, "NODE-3")["msDS-KeyVersionNumber"][0] != before["msDS-KeyVersionNumber"][0]
	})
	await(t, "the new keys in the keytab", func() bool { return m.run(t, "plan", spec).ExitCode == report.ExitOK })
	domain.AdcliTestJoin(t, m.Node)
	assert.Equal(t, before["objectSid"], c.Computer(t, "NODE-3")["objectSid"])
}

// await polls a condition. Its limit only ends a test that will not pass.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	limit, poll := time.After(10*time.Minute), time.NewTicker(time.Second)
	defer poll.Stop()
	for !holds() {
		select {
		case <-poll.C:
		case <-limit:
			require.FailNow(t, "there are not yet: "+what)
		}
	}
}
