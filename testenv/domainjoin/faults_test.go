package domainjoin

//machineadm:alone

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/domain"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// TestFaults: a controller that is away, far in time or not who it should be changes nothing, and whatever gets lost on the way,
// the next run completes the join.
func TestFaults(t *testing.T) {
	t.Parallel()
	network := nodes.NewNetwork(t, "dc1", "node-4")
	c := domain.Start(t, network, "dc1")
	m := newMachine(t, c, network, "node-4")
	joiner := credentials(domain.Joiner())
	trust := func(a authority.Authority) string {
		ca, err := json.Marshal(string(a.Certificate))
		require.NoError(t, err)
		return unit + "  transport: ldaps\n  ca: " + string(ca) + "\n"
	}
	t.Run("certificates", func(t *testing.T) {
		m.refused(t, refusal{
			spec: trust(authority.New(t)) + joiner, message: "spec.ca: connect to a domain controller of " + domain.Name, hint: "check the name of the server",
		}, report.ExitPrecondition)
		undo := c.Certify(t, c.CA, "other."+domain.Name)
		m.refused(t, refusal{spec: trust(c.CA) + joiner, message: "not dc1." + domain.Name, hint: "check the name of the server"}, report.ExitPrecondition)
		undo()
		undo = c.Certify(t, c.CA, c.FQDN, func(x *x509.Certificate) { x.NotAfter = time.Now().Add(-time.Hour) })
		m.refused(t, refusal{spec: trust(c.CA) + joiner, message: "expired", hint: "compare the clock"}, report.ExitPrecondition)
		undo()
	})
	t.Run("clocks", func(t *testing.T) {
		for by, word := range map[time.Duration]string{10 * time.Minute: "behind", -10 * time.Minute: "ahead of"} {
			undo := c.Skew(t, by)
			m.refused(t, refusal{
				spec: unit + joiner, message: word + " the clock of the domain controller dc1." + domain.Name,
				hint: "synchronize it first, with a Timesync document",
			}, report.ExitPrecondition)
			undo()
		}
	})
	t.Run("no controller", func(t *testing.T) {
		undo := c.Down(t)
		m.late(t, unit+joiner, "connect to a domain controller of "+domain.Name)
		undo()
		undo = c.Cut(t, "udp dport 53 drop", "tcp dport 53 drop")
		m.late(t, unit+joiner, "connect to a domain controller of "+domain.Name)
		undo()
	})
	t.Run("names over TCP alone", func(t *testing.T) {
		defer c.Cut(t, "udp dport 53 drop")()
		m.MustExec(t, "sh", "-c", "echo options timeout:1 attempts:1 >>/etc/resolv.conf")
		require.Equal(t, report.ExitDiffers, m.run(t, "plan", unit+joiner).ExitCode)
	})
	t.Run("a site without controllers", func(t *testing.T) {
		prefix, err := c.Address().Prefix(24)
		require.NoError(t, err)
		defer c.Subnet(t, prefix, domain.Branch)()
		require.Equal(t, report.ExitDiffers, m.run(t, "plan", unit+joiner).ExitCode)
	})
	t.Run("a controller that stops in the middle", func(t *testing.T) {
		m.write(t, stream, limited(3)+unit+joiner)
		m.MustExec(t, "systemd-run", "--unit=join", "--property=StandardOutput=file:/run/out", "machineadm", "apply", "--path", stream)
		m.MustExec(t, "sh", "-c", "until grep ' done: ' /run/out; do :; done")
		undo := c.Down(t)
		m.MustExec(t, "sh", "-c", "while systemctl is-active --quiet join; do :; done; systemctl reset-failed join || true")
		undo()
		m.completed(t, unit+joiner)
		m.left(t, c)
	})
	for _, rule := range []string{
		"tcp dport 389 quota over %d bytes reject with tcp reset", "tcp sport 389 quota over %d bytes drop",
		"tcp dport 88 quota over %d bytes reject with tcp reset",
	} {
		for bytes := 2000; bytes <= 8000; bytes *= 2 {
			if bytes != 4000 && !needs.Everything() {
				continue
			}
			rule := fmt.Sprintf(rule, bytes)
			t.Run(rule, func(t *testing.T) {
				undo := c.Cut(t, rule)
				m.write(t, stream, limited(2)+unit+joiner)
				r, err := m.Exec(t.Context(), "machineadm", "apply", "--path", stream)
				undo()
				require.NoError(t, err)
				assert.Contains(t, []int{report.ExitOK, report.ExitDeadline}, r.ExitCode, r.Stdout+r.Stderr)
				m.completed(t, unit+joiner)
				m.left(t, c)
			})
		}
	}
}

// left removes the account and the keytab, as an administrator does.
func (m machine) left(t *testing.T, c *domain.Controller) {
	t.Helper()
	m.MustExec(t, "rm", "/etc/krb5.keytab")
	c.MustExec(t, "samba-tool", "computer", "delete", strings.ToUpper(m.name))
}

// limited is the header of a document with a time limit.
func limited(seconds int) string {
	return strings.Replace(header, "name: domain", fmt.Sprintf("name: domain, timeout: %ds", seconds), 1)
}

// late applies a document to a domain whose controllers do not answer.
func (m machine) late(t *testing.T, spec, message string) {
	t.Helper()
	m.write(t, stream, limited(3)+spec)
	r, err := m.Exec(t.Context(), "machineadm", "apply", "--path", stream)
	require.NoError(t, err)
	require.Equal(t, report.ExitDeadline, r.ExitCode, r.Stdout+r.Stderr)
	assert.Contains(t, m.MustExec(t, "machineadm", "status").Stdout, message)
}

// TestSecret: no secret of a join is on the network, in a file or in the environment and the arguments of a process.
func TestSecret(t *testing.T) {
	t.Parallel()
	network := nodes.NewNetwork(t, "dc1", "node-5")
	c := domain.Start(t, network, "dc1")
	m := newMachine(t, c, network, "node-5")
	ca, err := json.Marshal(string(c.CA.Certificate))
	require.NoError(t, err)
	frames := network.Capture(t)
	const watch = `: >/run/seen; while :; do cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | grep -a -o c4n4[r]y >>/run/seen; done`
	m.MustExec(t, "systemd-run", "--unit=watch", "sh", "-c", watch)
	for _, transport := range []string{"", "  ca: " + string(ca) + "\n"} {
		require.Equal(t, report.ExitOK, m.run(t, "apply", unit+transport+credentials(domain.Joiner())).ExitCode)
		assert.Equal(t, stream+"\n", m.MustExec(t, "sh", "-c", canaries).Stdout)
		require.Equal(t, report.ExitOK, m.run(t, "apply", "  state: absent\n"+transport+credentials(domain.Joiner())).ExitCode)
	}
	staged := domain.Staged()
	require.Equal(t, report.ExitOK, m.run(t, "apply", "  computerName: STAGED\n  fqdn: staged."+domain.Name+"\n  oneTimePassword: {value: "+staged.Password+"}\n").ExitCode)
	m.MustExec(t, "systemctl", "stop", "watch")
	assert.Empty(t, m.MustExec(t, "cat", "/run/seen").Stdout)
	seen := frames()
	require.True(t, bytes.Contains(seen, []byte("AD.EXAMPLE.TEST")), "the recording has the Kerberos exchanges")
	for _, a := range []domain.Account{domain.Joiner(), staged} {
		var wide []byte
		for _, unit := range utf16.Encode([]rune(a.Password)) {
			wide = append(wide, byte(unit), byte(unit>>8))
		}
		for _, form := range [][]byte{[]byte(a.Password), wide, []byte(base64.StdEncoding.EncodeToString([]byte(a.Password)))} {
			assert.False(t, bytes.Contains(seen, form), a.Name)
		}
	}
}
