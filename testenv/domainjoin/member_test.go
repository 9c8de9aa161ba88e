package domainjoin

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/domain"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// TestMember is the life of a member: it joins once, changes as itself, gets new keys only when it needs them, and leaves.
func TestMember(t *testing.T) {
	t.Parallel()
	network := nodes.NewNetwork(t, "dc1", "node-1")
	c := domain.Start(t, network, "dc1")
	m := newMachine(t, c, network, "node-1")
	joiner := credentials(domain.Joiner())
	version := func() string { t.Helper(); return c.Computer(t, "NODE-1")["msDS-KeyVersionNumber"][0] }
	t.Run("joins, and sssd finds users", func(t *testing.T) {
		m.MustExec(t, "sh", "-c", foreign)
		m.applied(t, unit+"  sssd: {manage: true}\n", joiner)
		m.joined(t)
		assert.Contains(t, domain.Getent(t, m.Node, domain.Plain().Name), domain.Plain().Name+":")
		assert.Empty(t, m.MustExec(t, "sh", "-c", canaries).Stdout, "the last document has no secret")
		assert.Contains(t, m.MustExec(t, "klist", "-k").Stdout, "other/host@OTHER.TEST", "keys of other accounts stay")
		assert.Equal(t, []string{"node-1." + domain.Name}, c.Computer(t, "NODE-1")["dNSHostName"])
		assert.Equal(t, []string{"24"}, c.Computer(t, "NODE-1")["msDS-SupportedEncryptionTypes"])
	})
	t.Run("changes its account as itself", func(t *testing.T) {
		before := version()
		const service = "HTTP/node-1." + domain.Name
		m.applied(t, unit+"  servicePrincipalNames: ["+service+"]\n", "")
		assert.Contains(t, c.Computer(t, "NODE-1")["servicePrincipalName"], service)
		domain.Kvno(t, m.Node, service)
		assert.Equal(t, before, version(), "no new keys")
	})
	t.Run("gets another name", func(t *testing.T) {
		const other = unit + "  fqdn: other." + domain.Name + "\n"
		require.Equal(t, report.ExitPrecondition, m.run(t, "apply", other).ExitCode)
		m.applied(t, other, joiner)
		assert.Equal(t, []string{"other." + domain.Name}, c.Computer(t, "NODE-1")["dNSHostName"])
		domain.Kvno(t, m.Node, "host/other."+domain.Name)
		m.applied(t, unit, "")
	})
	t.Run("gets keys of another type", func(t *testing.T) {
		before := version()
		m.applied(t, unit+"  encryptionTypes: [aes256-cts-hmac-sha1-96, aes128-cts-hmac-sha1-96, rc4-hmac]\n", "")
		assert.NotEqual(t, before, version())
		assert.True(t, slices.ContainsFunc(domain.Klist(t, m.Node), func(e domain.Entry) bool { return strings.Contains(e.Enctype, "arcfour") }))
		m.joined(t)
		m.applied(t, unit, "")
	})
	t.Run("loses its keytab", func(t *testing.T) {
		m.MustExec(t, "rm", "/etc/krb5.keytab")
		m.refused(t, refusal{spec: unit, message: "spec.credentials: the machine is not a member", hint: "add credentials"}, report.ExitPrecondition)
		m.refused(t, refusal{spec: unit + joiner, message: "the account NODE-1$ exists", hint: "set existingAccount: reuse"}, report.ExitPrecondition)
		m.applied(t, unit+"  existingAccount: reuse\n", joiner)
		m.joined(t)
	})
	t.Run("has a keytab that others may read", func(t *testing.T) {
		m.MustExec(t, "sh", "-c", "chmod 644 /etc/krb5.keytab && chown nobody /etc/krb5.keytab")
		m.applied(t, unit, "")
		assert.Equal(t, "600 root\n", m.MustExec(t, "stat", "-c", "%a %U", "/etc/krb5.keytab").Stdout)
	})
	t.Run("leaves", func(t *testing.T) {
		const absent = "  state: absent\n  sssd: {manage: true}\n"
		m.MustExec(t, "sh", "-c", foreign)
		m.refused(t, refusal{spec: absent, message: "spec.credentials: the account NODE-1$ exists", hint: "add credentials of an account"}, report.ExitPrecondition)
		m.applied(t, absent+"  leave: disable\n", joiner)
		assert.Equal(t, []string{"4098"}, c.Computer(t, "NODE-1")["userAccountControl"])
		assert.NotContains(t, m.MustExec(t, "klist", "-k").Stdout, domain.Realm)
		m.MustExec(t, "sh", "-c", "! test -e /etc/krb5.conf && ! test -e /etc/krb5.conf.d/machineadm.conf && ! test -e /etc/sssd/conf.d/machineadm.conf && ! systemctl is-active sssd")
	})
	t.Run("comes back and is deleted", func(t *testing.T) {
		m.MustExec(t, "rm", "/etc/krb5.keytab")
		m.applied(t, unit+"  existingAccount: reuse\n", joiner)
		m.joined(t)
		m.applied(t, "  state: absent\n", joiner)
		assert.Nil(t, c.Computer(t, "NODE-1"))
		m.MustExec(t, "sh", "-c", "! test -e /etc/krb5.keytab")
	})
	t.Run("whose account was deleted in the domain", func(t *testing.T) {
		m.applied(t, unit, joiner)
		c.MustExec(t, "samba-tool", "computer", "delete", "NODE-1")
		m.refused(t, refusal{
			spec: unit, message: "the domain does not accept the keys in /etc/krb5.keytab, and the document has no credentials: the domain has no such account",
		}, report.ExitPrecondition)
		m.applied(t, "  state: absent\n", "")
	})
	t.Run("has a one-time password", func(t *testing.T) {
		staged := domain.Staged()
		spec := "  computerName: STAGED\n  fqdn: staged." + domain.Name + "\n"
		m.applied(t, spec, "  oneTimePassword: {value: "+staged.Password+"}\n")
		domain.KinitKeytab(t, m.Node, staged.Name+"@"+domain.Realm)
		domain.Kvno(t, m.Node, "host/staged."+domain.Name)
	})
}

// TestTakenOver: an account with the right to reset passwords alone takes over the account of an earlier machine, and each name that
// it has.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	network := nodes.NewNetwork(t, "dc1", "taken", "node-with-a-long-name")
	c := domain.Start(t, network, "dc1")
	m := newMachine(t, c, network, "taken")
	before := c.Computer(t, "TAKEN")
	m.applied(t, unit+"  existingAccount: reuse\n", credentials(domain.Resetter()))
	m.joined(t)
	after := c.Computer(t, "TAKEN")
	assert.Equal(t, before["objectSid"], after["objectSid"])
	m = newMachine(t, c, network, "node-with-a-long-name")
	m.applied(t, unit, credentials(domain.Joiner()))
	domain.AdcliTestJoin(t, m.Node)
	domain.Kvno(t, m.Node, "host/node-with-a-long-name."+domain.Name)
	name, _, _ := strings.Cut(domain.Klist(t, m.Node)[0].Principal, "$")
	assert.Regexp(t, "^NODE-WITH-[A-Z2-7]{4}$", name)
}

// foreign adds a key of another account to the keytab.
const foreign = `printf 'addent -password -p other/host@OTHER.TEST -k 1 -e aes256-cts-hmac-sha1-96\nx\nwkt /etc/krb5.keytab\n' | ktutil`

// TestAdcli: a machine that adcli has joined is a member for the plugin, and the other way round.
func TestAdcli(t *testing.T) {
	t.Parallel()
	network := nodes.NewNetwork(t, "dc1", "node-2")
	c := domain.Start(t, network, "dc1")
	m := newMachine(t, c, network, "node-2")
	r, err := m.ExecInput(t.Context(), strings.NewReader(domain.Joiner().Password), "adcli", "join", "--domain="+domain.Name,
		"--login-user="+domain.Joiner().Name, "--domain-ou="+domain.Servers, "--stdin-password", "--host-fqdn=node-2."+domain.Name)
	require.NoError(t, err)
	require.Zero(t, r.ExitCode, r.Stderr)
	// adcli of Debian 12 asks for RC4 as well.
	const spec = unit + "  krb5Conf: {manage: false}\n  encryptionTypes: [aes256-cts-hmac-sha1-96, aes128-cts-hmac-sha1-96, rc4-hmac]\n"
	require.Equal(t, report.ExitOK, m.run(t, "plan", spec).ExitCode)
	r, err = m.ExecInput(t.Context(), strings.NewReader(domain.Joiner().Password), "adcli", "update", "--domain="+domain.Name,
		"--computer-password-lifetime=0", "--verbose")
	require.NoError(t, err)
	require.Zero(t, r.ExitCode, r.Stderr)
	require.Equal(t, report.ExitOK, m.run(t, "plan", spec).ExitCode, "adcli has renewed the keys")
}
