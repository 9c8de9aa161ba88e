package domainjoin

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/domain"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	stream = "/etc/machineadm/node.yaml"
	header = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: DomainJoin\nmetadata: {name: domain}\nspec:\n  domain: " + domain.Name + "\n"
	// unit is where Joiner may create computers.
	unit = "  organizationalUnit: " + domain.Servers + "\n"
)

// credentials are the credentials of an account, in a document.
func credentials(a domain.Account) string {
	return "  credentials: {username: " + a.Name + ", password: {value: " + a.Password + "}}\n"
}

// machine is a node with the host and the plugin, in the network of a domain.
type machine struct {
	*nodes.Node
	name string
}

// newMachine boots a machine that has joined nothing.
func newMachine(t *testing.T, c *domain.Controller, network *nodes.Network, name string) machine {
	t.Helper()
	needs.Tier(t, needs.System)
	built := t.TempDir()
	sources := map[string]string{
		"machineadm": "host/cmd/machineadm", "machineadm-domain-join-plugin-activedirectory": "plugins/domain-join/activedirectory",
	}
	require.NoError(t, tools.Products(t.Context(), built, sources))
	m := machine{c.Member(t, network, name), name}
	m.MustExec(t, "mkdir", "-p", "/usr/libexec/machineadm", "/etc/machineadm")
	for name := range sources {
		to := "/usr/libexec/machineadm/" + name
		if name == "machineadm" {
			to = "/usr/bin/machineadm"
		}
		require.NoError(t, m.CopyIn(t.Context(), filepath.Join(built, name), to, 0o755))
	}
	return m
}

// run writes the document and runs a command of the host with it.
func (m machine) run(t *testing.T, command, spec string) nodes.Result {
	t.Helper()
	m.write(t, stream, header+spec)
	began := time.Now()
	r, err := m.Exec(t.Context(), "machineadm", command, "--path", stream)
	require.NoError(t, err)
	t.Logf("%s: %s, exit code %d\n%s%s", command, time.Since(began).Round(time.Millisecond), r.ExitCode, r.Stdout, r.Stderr)
	return r
}

// applied applies the document; a second time nothing changes, even without credentials.
func (m machine) applied(t *testing.T, spec, secret string) {
	t.Helper()
	require.Equal(t, report.ExitDiffers, m.run(t, "plan", spec+secret).ExitCode)
	require.Equal(t, report.ExitOK, m.run(t, "apply", spec+secret).ExitCode)
	require.Equal(t, report.ExitOK, m.run(t, "plan", spec).ExitCode)
}

// completed applies the document to a machine on which a run may have ended at any moment.
func (m machine) completed(t *testing.T, spec string) {
	t.Helper()
	require.Equal(t, report.ExitOK, m.run(t, "apply", spec).ExitCode)
	require.Equal(t, report.ExitOK, m.run(t, "plan", spec).ExitCode)
	m.joined(t)
}

// forget makes the machine one that has joined nothing.
func (m machine) forget(t *testing.T) {
	t.Helper()
	m.MustExec(t, "sh", "-c", "rm -rf /etc/krb5.keytab /etc/krb5.conf /etc/krb5.conf.d /var/lib/machineadm /run/machineadm")
}

// joined checks with programs that are not ours that the machine is a member.
func (m machine) joined(t *testing.T) {
	t.Helper()
	account := strings.ToUpper(m.name) + "$@" + domain.Realm
	m.MustExec(t, "kinit", "-k", account)
	m.MustExec(t, "kvno", "-k", "/etc/krb5.keytab", "host/"+m.name+"."+domain.Name+"@"+domain.Realm)
	m.MustExec(t, "adcli", "testjoin", "--domain="+domain.Name)
}
