package nodes

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEgress: what is not counted here, other suites take for not sent.
func TestEgress(t *testing.T) {
	t.Parallel()
	for _, suite := range Suites() {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			network := NewNetwork(t, "node", Gateway)
			n := Boot(t, Options{Suite: suite, Network: network, Layers: EgressLayers(suite), Prepare: CountEgress(network)})
			require.Empty(t, n.Egress(t), "a node by itself")
			n.MustExec(t, "sh", "-c", "! getent hosts name.invalid")
			assert.Equal(t, "udp . "+network.Address(Gateway).String()+" . 53", n.Egress(t))
			n.MustExec(t, "bash", "-c", "! timeout 1 bash -c ': </dev/tcp/192.0.2.1/443'")
			assert.Contains(t, n.Egress(t), "tcp . 192.0.2.1 . 443")
			require.NoError(t, n.Reboot(t.Context()))
			assert.Empty(t, n.Egress(t), "each boot is counted by itself")
		})
	}
}
