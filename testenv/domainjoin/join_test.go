package domainjoin

import (
	"encoding/json"
	"testing"

	"github.com/machineadm/machineadm/testenv/domain"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// TestJoin: each transport and each credential makes a machine a member, and the second run needs no credential.
func TestJoin(t *testing.T) {
	t.Parallel()
	network := nodes.NewNetwork(t, "dc1", "node-1")
	c := domain.Start(t, network, "dc1")
	m := newMachine(t, c, network, "node-1")
	ca, err := json.Marshal(string(c.CA.Certificate))
	if err != nil {
		t.Fatal(err)
	}
	for _, transport := range []struct{ name, spec string }{
		{"sealed", ""},
		{"ldaps", "  ca: " + string(ca) + "\n"},
		{"starttls", "  transport: starttls\n  ca: " + string(ca) + "\n"},
	} {
		t.Run(transport.name, func(t *testing.T) {
			m.forget(t)
			spec := unit + transport.spec
			if transport.name != "sealed" {
				spec += "  existingAccount: reuse\n"
			}
			m.applied(t, spec, credentials(domain.Joiner()))
			m.joined(t)
		})
	}
}
