package domain

import (
	"bufio"
	"context"
	"encoding/base64"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/testenv/nodes"
)

// Entry is a key of a keytab.
type Entry struct {
	Kvno               int
	Principal, Enctype string
}

// Klist returns the entries of a member's keytab, by MIT's klist.
func Klist(t testing.TB, n *nodes.Node) []Entry {
	t.Helper()
	var entries []Entry
	line := regexp.MustCompile(`(?m)^ *(\d+) (\S+) \((\S+)\) *$`)
	for _, m := range line.FindAllStringSubmatch(n.MustExec(t, "klist", "-ke").Stdout, -1) {
		entries = append(entries, Entry{Kvno: number(t, m[1]), Principal: m[2], Enctype: m[3]})
	}
	return entries
}

// AdcliTestJoin has adcli authenticate as the member with its keytab.
func AdcliTestJoin(t testing.TB, n *nodes.Node) {
	t.Helper()
	n.MustExec(t, "adcli", "testjoin", "--domain="+Name)
}

// KinitKeytab has MIT's kinit authenticate with the member's keytab. The ticket is thrown away.
func KinitKeytab(t testing.TB, n *nodes.Node, principal string) {
	t.Helper()
	n.MustExec(t, "kinit", "-k", "-c", "MEMORY:", principal)
}

// Kvno has the member get a ticket for one of its own services and decrypt it with its keytab, by MIT's kvno. It returns the
// version of the ticket's key.
func Kvno(t testing.TB, n *nodes.Node, spn string) int {
	t.Helper()
	const script = `export KRB5CCNAME=$(mktemp)
trap 'rm -f $KRB5CCNAME' EXIT
kinit -k "$1" && kvno -k /etc/krb5.keytab "$2"`
	for _, e := range Klist(t, n) {
		if !strings.Contains(e.Principal, "$@") {
			continue
		}
		out := n.MustExec(t, "sh", "-c", script, "sh", e.Principal, spn+"@"+Realm).Stdout
		m := regexp.MustCompile(`kvno = (\d+), keytab entry valid`).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("kvno %s: %s", spn, out)
		}
		return number(t, m[1])
	}
	t.Fatal("the keytab has no key of the machine's account")
	return 0
}

// Getent has sssd, which authenticates as the member, look up a user, and returns the line of passwd(5). A member without a
// configuration of sssd gets a minimal one.
func Getent(t testing.TB, n *nodes.Node, user string) string {
	t.Helper()
	const config = "[sssd]\ndomains = " + Name + "\nservices = nss\n[domain/" + Name + "]\nid_provider = ad\nad_domain = " + Name + "\n"
	const start = `umask 077; test -e /etc/sssd/sssd.conf || printf %s "$1" >/etc/sssd/sssd.conf; systemctl restart sssd`
	n.MustExec(t, "sh", "-c", start, "sh", config)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := n.Exec(ctx, "sh", "-c", `until getent -s sss passwd "$1"; do sleep 0.1; done`, "sh", user)
	if err != nil {
		t.Fatalf("sssd does not find %s: %v\n%s", user, err, n.MustExec(t, "journalctl", "--unit=sssd", "--no-pager").Stdout)
	}
	return strings.TrimSpace(r.Stdout)
}

// Computer returns a computer's account as the directory has it: nil when it has none of this name, which is without the $.
func (c *Controller) Computer(t testing.TB, name string) map[string][]string {
	t.Helper()
	out := c.run(t, "", "ldbsearch", "-H", "/var/lib/samba/private/sam.ldb", "-b", BaseDN, "(sAMAccountName="+name+"$)",
		"distinguishedName", "dNSHostName", "servicePrincipalName", "msDS-SupportedEncryptionTypes", "msDS-KeyVersionNumber",
		"userAccountControl", "objectSid", "operatingSystem", "description")
	var attributes map[string][]string
	lines := bufio.NewScanner(strings.NewReader(strings.ReplaceAll(out, "\n ", ""))) // RFC 2849 folds long lines
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), ": ")
		key, encoded := strings.CutSuffix(key, ":")
		if !ok || strings.HasPrefix(key, "#") || key == "dn" || key == "ref" {
			continue
		}
		if encoded {
			raw, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			value = string(raw)
		}
		if attributes == nil {
			attributes = map[string][]string{}
		}
		attributes[key] = append(attributes[key], value)
	}
	return attributes
}

func number(t testing.TB, digits string) int {
	t.Helper()
	n, err := strconv.Atoi(digits)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
