package domain

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/nodes"
)

// TestJoin: Debian's own client finds the controller by DNS, joins with the rights of Joiner and of no other account, and Kerberos
// accepts the machine.
func TestJoin(t *testing.T) {
	t.Parallel()
	network := nodes.NewNetwork(t, "dc1", "node-1")
	c := Start(t, network, "dc1")
	n := c.Member(t, network, "node-1")
	join := func(a Account, unit string) nodes.Result {
		t.Helper()
		r, err := n.ExecInput(t.Context(), strings.NewReader(a.Password), "adcli", "join", "--domain="+Name, "--login-user="+a.Name,
			"--domain-ou="+unit, "--stdin-password", "--host-fqdn=node-1."+Name)
		require.NoError(t, err)
		return r
	}
	for _, a := range []Account{Plain(), Disabled(), Expired(), MustChange(), {Joiner().Name, "wrong"}} {
		require.NotZero(t, join(a, Servers).ExitCode, a.Name)
	}
	require.NotZero(t, join(Joiner(), Locked).ExitCode)
	r := join(Joiner(), Servers)
	require.Zero(t, r.ExitCode, r.Stderr)
	n.MustExec(t, "adcli", "testjoin", "--domain="+Name)
	n.MustExec(t, "kinit", "-k", "NODE-1$@"+Realm)
	n.MustExec(t, "kvno", "host/node-1."+Name+"@"+Realm)
	staged, err := n.ExecInput(t.Context(), strings.NewReader(Staged().Password), "kinit", Staged().Name+"@"+Realm)
	require.NoError(t, err)
	require.Zero(t, staged.ExitCode, staged.Stderr)
}
