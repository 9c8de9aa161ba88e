package domainjoin

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/domain"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// canaries are secrets that nothing but the document may have.
const canaries = `grep -rslaE 'c4n4[r]y|YzRuNHJ[5]|c.4.n.4.r.[y]' /etc /run /tmp /root /var --exclude-dir=cache || true`

// refusal is what an operator sees of a join that the domain refuses.
type refusal struct {
	name, spec string
	// message and hint are parts of the first line; facts are in the report.
	message, hint string
	facts         map[string]string
}

// TestRefused: each refusal of the domain is explained before anything is changed.
func TestRefused(t *testing.T) {
	t.Parallel()
	network := nodes.NewNetwork(t, "dc1", "node-1")
	c := domain.Start(t, network, "dc1")
	m := newMachine(t, c, network, "node-1")
	wrong := func(a domain.Account) domain.Account { a.Password = "c4n4ry.wrong"; return a }
	staged := "  computerName: " + strings.TrimSuffix(domain.Staged().Name, "$") + "\n"
	const files = "cd /etc && find . ! -path ./machineadm/node.yaml -type f -exec sha256sum {} + | sort | sha256sum"
	before := m.MustExec(t, "sh", "-c", files).Stdout
	for _, r := range []refusal{
		{
			"wrong password", unit + credentials(wrong(domain.Joiner())), "spec.credentials.password: authenticate with the credentials: the password is wrong", "correct it",
			map[string]string{"kerberosError": "24"},
		},
		{
			"no such user", unit + credentials(domain.Account{Name: "nobody", Password: "c4n4ry.none"}),
			"spec.credentials.username: authenticate with the credentials: the domain has no such account", "correct the name",
			map[string]string{"kerberosError": "6"},
		},
		{
			"disabled", unit + credentials(domain.Disabled()), "the account is disabled", "enable it in the domain", map[string]string{"kerberosError": "18", "windowsStatus": "0xc0000072"},
		},
		{
			"expired", unit + credentials(domain.Expired()), "the account has expired", "extend it in the domain", map[string]string{"kerberosError": "18", "windowsStatus": "0xc0000193"},
		},
		{
			"must change", unit + credentials(domain.MustChange()), "the password must be changed before it is used", "change it in the domain",
			map[string]string{"kerberosError": "23", "windowsStatus": "0xc0000224"},
		},
		{
			"locked out", unit + credentials(domain.LockedOut()),
			"the account is disabled, expired or locked out", "see the account in the domain", // Samba sends no status with it
			map[string]string{"kerberosError": "18"},
		},
		{
			"expired password", unit + credentials(domain.PasswordExpired()), "the password has expired", "set a new one in the domain",
			map[string]string{"kerberosError": "23", "windowsStatus": "0xc0000071"},
		},
		{
			"a service of another account", unit + "  servicePrincipalNames: [" + domain.HeldSPN + "]\n" + credentials(domain.Joiner()),
			"spec.servicePrincipalNames: the service " + domain.HeldSPN + " belongs to another account: CN=" + domain.Holder, "remove it there", nil,
		},
		{
			"a disabled staged account", "  computerName: STAGEDOFF\n  oneTimePassword: {value: " + domain.StagedDisabled().Password + "}\n",
			"spec.oneTimePassword: authenticate as STAGEDOFF$: the account is disabled", "enable it",
			map[string]string{"kerberosError": "18"},
		},
		{
			"no right to create, but to reset", unit + credentials(domain.Resetter()), "the account lacks the right to create computers", "grant it", nil,
		},
		{
			"no right", unit + credentials(domain.Plain()), "spec.credentials: the account lacks the right to create computers in " + domain.Servers, "grant it on the organizational unit",
			map[string]string{"ldapResult": "50"},
		},
		{
			"no right in another unit", "  organizationalUnit: " + domain.Locked + "\n" + credentials(domain.Joiner()), "the account lacks the right to create computers in " + domain.Locked,
			"grant it",
			map[string]string{"ldapResult": "50"},
		},
		{
			"no right in the default container", credentials(domain.Joiner()), "the account lacks the right to create computers in CN=Computers," + domain.BaseDN, "grant it",
			map[string]string{"ldapResult": "50"},
		},
		{
			"no such unit", "  organizationalUnit: OU=None," + domain.BaseDN + "\n" + credentials(domain.Joiner()), "spec.organizationalUnit: look for the organizational unit: the organizational unit does not exist",
			"correct spec.organizationalUnit",
			map[string]string{"ldapResult": "32"},
		},
		{
			"account exists", unit + staged + credentials(domain.Joiner()), "spec.existingAccount: the account STAGED$ exists: CN=STAGED," + domain.Servers,
			"set existingAccount: reuse", nil,
		},
		{
			"wrong one-time password", staged + "  oneTimePassword: {value: c4n4ry.wrong}\n", "spec.oneTimePassword: authenticate as STAGED$: the password is wrong", "correct it",
			map[string]string{"kerberosError": "24"},
		},
		{
			"no staged account", "  oneTimePassword: {value: c4n4ry.wrong}\n", "spec.oneTimePassword: authenticate as NODE-1$: the domain has no such account", "correct the name",
			map[string]string{"kerberosError": "6"},
		},
		{"no credentials", unit, "spec.credentials: the machine is not a member of ad.example.test, and the document has no credentials to join it", "add credentials", nil},
	} {
		t.Run(r.name, func(t *testing.T) { m.refused(t, r, report.ExitPrecondition) })
	}
	require.Equal(t, before, m.MustExec(t, "sh", "-c", files).Stdout, "a refused join changes nothing")
}

// refused applies a document that the domain refuses, and compares what an operator sees.
func (m machine) refused(t *testing.T, r refusal, code int) {
	t.Helper()
	require.Equal(t, code, m.run(t, "apply", r.spec).ExitCode)
	first, _, _ := strings.Cut(m.MustExec(t, "machineadm", "status").Stdout, "\n")
	assert.Contains(t, first, r.message)
	assert.Contains(t, first, "; remedy: "+r.hint)
	var run report.Report
	require.NoError(t, json.Unmarshal([]byte(m.MustExec(t, "cat", "/run/machineadm/report.json").Stdout), &run))
	for name, value := range r.facts {
		assert.Equal(t, value, run.Errors[0].Facts[name], name)
	}
	if strings.Contains(r.spec, "c4n4ry") {
		assert.Equal(t, stream+"\n", m.MustExec(t, "sh", "-c", canaries).Stdout)
	}
}
