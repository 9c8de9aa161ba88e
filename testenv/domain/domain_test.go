package domain

//machineadm:tier system

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/nodes"
)

// world is a controller and a member, which the tests of one file share: a test that changes the controller is not parallel.
type world struct {
	*Controller
	network *nodes.Network
	member  *nodes.Node
}

func newWorld(t *testing.T) world {
	network := nodes.NewNetwork(t, "dc1", "node-1", "node-2")
	c := Start(t, network, "dc1")
	return world{c, network, c.Member(t, network, "node-1")}
}

// ldap searches from the member with a simple bind, and returns the result code and what it printed; 124 is no answer.
func (w world) ldap(t *testing.T, a Account, args ...string) (int, string) {
	t.Helper()
	return w.ldapOver(t, "ldaps", a, args...)
}

func (w world) ldapOver(t *testing.T, scheme string, a Account, args ...string) (int, string) {
	t.Helper()
	argv := append([]string{
		"env", "LDAPTLS_CACERT=" + CAFile, "timeout", "5", "ldapsearch", "-x", "-LLL", "-H", scheme + "://" + w.FQDN, "-s", "base",
	}, args...)
	if a.Name != "" {
		argv = append(argv, "-D", a.Name+"@"+Name, "-w", a.Password)
	}
	r, err := w.member.Exec(t.Context(), argv...)
	require.NoError(t, err)
	return r.ExitCode, r.Stdout + r.Stderr
}

// change sends changes in LDIF, and returns as ldap does.
func (w world) change(t *testing.T, a Account, ldif ...string) (int, string) {
	t.Helper()
	file := strings.NewReader(strings.Join(ldif, "\n") + "\n")
	r, err := w.member.ExecInput(t.Context(), file, "env", "LDAPTLS_CACERT="+CAFile, "ldapmodify", "-x", "-H", "ldaps://"+w.FQDN,
		"-D", a.Name+"@"+Name, "-w", a.Password)
	require.NoError(t, err)
	return r.ExitCode, r.Stdout + r.Stderr
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	t.Run("accounts", func(t *testing.T) { testAccounts(t, w) })
	t.Run("rights", func(t *testing.T) { testRights(t, w) })
	t.Run("sites", func(t *testing.T) { testSites(t, w) })
	t.Run("adcli", func(t *testing.T) { testJoin(t, w, w.member, "node-1") })
	t.Run("adcli of Debian 13", func(t *testing.T) {
		testJoin(t, w, w.MemberOf(t, nodes.Trixie, w.network, "node-2"), "node-2")
	})
}

// testAccounts shows what a bind with each account is answered, and the key distribution center's answer beside it.
func testAccounts(t *testing.T, w world) {
	for _, c := range []struct {
		account  Account
		ldap     string // the number after "data" in the answer of Active Directory
		kerberos string
	}{
		{Administrator(), "", ""},
		{Joiner(), "", ""},
		{Resetter(), "", ""},
		{Plain(), "", ""},
		{Staged(), "", ""},
		{Taken(), "", ""},
		{Account{Joiner().Name, "wrong"}, "52e", "Password incorrect"},
		{Account{"missing", "wrong"}, "52e", "not found in Kerberos database"},
		{Disabled(), "533", "revoked"},
		{StagedDisabled(), "533", "revoked"},
		{Expired(), "701", "revoked"},
		{LockedOut(), "775", "revoked"},
		{PasswordExpired(), "532", "Password expired"},
		{MustChange(), "773", "Password expired"},
	} {
		t.Run(c.account.Name, func(t *testing.T) {
			t.Parallel()
			code, answer := w.ldap(t, c.account, "-b", BaseDN, "dn")
			kinit, err := w.member.ExecInput(t.Context(), strings.NewReader(c.account.Password+"\n"),
				"kinit", "-c", "MEMORY:", c.account.Name+"@"+Realm)
			require.NoError(t, err)
			if c.ldap == "" {
				require.Zero(t, code, answer)
				require.Zero(t, kinit.ExitCode, kinit.Stderr)
				return
			}
			require.Equal(t, 49, code, answer)
			require.Contains(t, answer, "AcceptSecurityContext error, data "+c.ldap+",")
			require.NotZero(t, kinit.ExitCode)
			require.Contains(t, kinit.Stdout+kinit.Stderr, c.kerberos)
		})
	}
}

// testRights shows the directory's answers to changes: 0, or the result code of the refusal.
func testRights(t *testing.T, w world) {
	create := func(name, container string) []string {
		return []string{
			"dn: CN=" + name + "," + container, "changetype: add", "objectClass: computer", "sAMAccountName: " + name + "$",
			"userAccountControl: 4096",
		}
	}
	replace := func(attribute, value string) []string {
		return []string{"dn: CN=TAKEN," + Servers, "changetype: modify", "replace: " + attribute, attribute + ": " + value}
	}
	password := replace("unicodePwd:", "IgBjADQAbgA0AHIAeQAuAE4AMwB3AC4AcABhAHMAcwAiAA==") // "c4n4ry.N3w.pass" in quotes
	password[2] = "replace: unicodePwd"
	for _, c := range []struct {
		name    string
		account Account
		change  []string
		code    int
	}{
		{"joiner creates in its unit", Joiner(), create("MADE", Servers), 0},
		{"joiner creates what is there", Joiner(), create("TAKEN", Servers), 68},
		{"joiner creates in another unit", Joiner(), create("MADE", Locked), 50},
		{"joiner creates in a missing unit", Joiner(), create("MADE", "OU=Missing,"+BaseDN), 32},
		{"joiner creates in the default container", Joiner(), create("MADE", Computers), 50},
		{"plain creates beyond its quota", Plain(), create("MADE", Computers), 50},
		{"administrator creates in the default container", Administrator(), create("MADE2", Computers), 0},
		{"joiner takes a held name", Joiner(), replace("servicePrincipalName", HeldSPN), 19},
		{"joiner writes", Joiner(), replace("dNSHostName", "taken."+Name), 0},
		{"resetter creates", Resetter(), create("MADE3", Servers), 50},
		{"resetter writes", Resetter(), replace("dNSHostName", "taken."+Name), 0},
		{"resetter resets", Resetter(), password, 0},
		{"plain writes", Plain(), replace("dNSHostName", "taken."+Name), 50},
		{"plain resets", Plain(), password, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, answer := w.change(t, c.account, c.change...)
			require.Equal(t, c.code, code, answer)
			t.Log(answer)
		})
	}
	taken := w.Computer(t, "TAKEN")
	require.Equal(t, []string{"HOST/taken", "HOST/taken." + Name}, taken["servicePrincipalName"])
	require.Equal(t, []string{"CN=TAKEN," + Servers}, taken["distinguishedName"])
	require.Equal(t, []string{"taken." + Name}, taken["dNSHostName"])
	require.Nil(t, w.Computer(t, "MISSING"))
}

// testSites: the controller shows a client the site of its address in its answer to a NetLogon ping, of which adcli prints it.
func testSites(t *testing.T, w world) {
	site := func() string {
		t.Helper()
		return w.member.MustExec(t, "adcli", "info", Name).Stdout
	}
	for _, service := range []string{
		"_ldap._tcp", "_kerberos._tcp", "_kerberos._udp", "_kpasswd._tcp", "_kpasswd._udp",
		"_gc._tcp", "_ldap._tcp.dc._msdcs", "_ldap._tcp.pdc._msdcs", "_ldap._tcp." + ControllerSite + "._sites.dc._msdcs",
	} {
		w.MustExec(t, "host", "-t", "SRV", service+"."+Name, w.Address().String())
	}
	require.NotContains(t, site(), "computer-site = ")
	for _, name := range []string{ControllerSite, Branch} {
		undo := w.Subnet(t, netip.PrefixFrom(w.member.Address(), 32), name)
		require.Contains(t, site(), "domain-controller-site = "+ControllerSite+"\n")
		require.Contains(t, site(), "computer-site = "+name+"\n")
		code, out := w.ldap(t, Account{}, "-b", "", "(&(DnsDomain="+Name+`)(NtVer=\06\00\00\00))`, "netlogon")
		require.Zero(t, code, out)
		require.Contains(t, out, "netlogon:: ")
		undo()
	}
}

// testJoin: Debian's own client joins with the rights of Joiner and of no other account, and what checks joins accepts it.
func testJoin(t *testing.T, w world, n *nodes.Node, name string) {
	join := func(a Account, unit string) nodes.Result {
		t.Helper()
		r, err := n.ExecInput(t.Context(), strings.NewReader(a.Password), "adcli", "join", "--domain="+Name, "--login-user="+a.Name,
			"--domain-ou="+unit, "--stdin-password", "--host-fqdn="+name+"."+Name)
		require.NoError(t, err)
		return r
	}
	require.NotZero(t, join(Plain(), Servers).ExitCode)
	require.NotZero(t, join(Joiner(), Locked).ExitCode)
	require.Nil(t, w.Computer(t, name))
	r := join(Joiner(), Servers)
	require.Zero(t, r.ExitCode, r.Stderr)

	account := strings.ToUpper(name)
	AdcliTestJoin(t, n)
	KinitKeytab(t, n, account+"$@"+Realm)
	entries := Klist(t, n)
	require.Contains(t, entries, Entry{Kvno: entries[0].Kvno, Principal: account + "$@" + Realm, Enctype: "aes256-cts-hmac-sha1-96"})
	require.Equal(t, entries[0].Kvno, Kvno(t, n, "host/"+name+"."+Name))
	require.Regexp(t, "^joiner(@"+Name+")?:", Getent(t, n, "joiner@"+Name))
	computer := w.Computer(t, name)
	require.Equal(t, []string{"CN=" + account + "," + Servers}, computer["distinguishedName"])
	require.Equal(t, []string{name + "." + Name}, computer["dNSHostName"])
	require.Len(t, computer["objectSid"], 1)
	t.Log(entries, computer)
}
