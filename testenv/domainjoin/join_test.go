package domainjoin

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/domain"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// TestJoin: each transport makes a machine a member. Samba 4.17 refuses Kerberos over TLS, which the plan says; 4.22 accepts it
// only with the right binding to the connection, as Windows does.
//
//machineadm:core
func TestJoin(t *testing.T) {
	t.Parallel()
	for suite, refuses := range map[nodes.Suite]bool{nodes.Bookworm: true, nodes.Trixie: false} {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			network := nodes.NewNetwork(t, "dc1", "node-1")
			c := domain.StartOn(t, suite, network, "dc1")
			m := newMachine(t, c, network, "node-1")
			ca, err := json.Marshal(string(c.CA.Certificate))
			require.NoError(t, err)
			for name, spec := range map[string]string{
				"sealed": "", "ldaps": "  ca: " + string(ca) + "\n", "starttls": "  transport: starttls\n  ca: " + string(ca) + "\n",
			} {
				t.Run(name, func(t *testing.T) {
					plan := m.run(t, "plan", unit+spec+credentials(domain.Joiner()))
					assert.Equal(t, refuses && name != "sealed", strings.Contains(plan.Stdout+plan.Stderr, "refuses Kerberos over TLS"))
					m.applied(t, unit+spec, credentials(domain.Joiner()))
					m.joined(t)
					m.applied(t, "  state: absent\n"+spec, credentials(domain.Joiner()))
				})
			}
		})
	}
}
