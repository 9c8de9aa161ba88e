package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/nodes"
)

const joinConfiguration = `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery: {bootstrapToken: {token: TOKEN, apiServerEndpoint: "ENDPOINT", caCertHashes: ["HASH"]}}
timeouts: {discovery: 10s}
`

// What a join asks a bare control plane for is there, and nothing is for a join with another token or authority.
func TestJoinDiscoversTheBareControlPlane(t *testing.T) {
	t.Parallel()
	network := nodes.NewNetwork(t, "control")
	c := APIServer(t, network, "control")
	join := func(t *testing.T, token, hash string, command ...string) nodes.Result {
		t.Helper()
		config := strings.NewReplacer("TOKEN", token, "ENDPOINT", c.Endpoint, "HASH", hash).Replace(joinConfiguration)
		argv := append([]string{"kubeadm"}, append(command, "--config=/dev/stdin", "--ignore-preflight-errors=all")...)
		r, err := c.ExecInput(t.Context(), strings.NewReader(config), argv...)
		require.NoError(t, err)
		return r
	}
	right := join(t, Token, c.CACertHash, "join", "--dry-run")
	assert.Zero(t, right.ExitCode, "%s%s", right.Stdout, right.Stderr)
	for name, namespace := range map[string]string{"cluster-info": "kube-public", "kubeadm-config": "kube-system", "kubelet-config": "kube-system"} {
		asked := fmt.Sprintf("Resource name %q, namespace %q\n", name, namespace)
		assert.Contains(t, right.Stdout, asked)
		assert.NotContains(t, right.Stdout, asked+"[dryrun] Real object does not exist", "a dry run makes up what it does not find")
	}
	for name, wrong := range map[string][2]string{
		"token":     {"absent.0123456789abcdef", c.CACertHash},
		"secret":    {Token[:7] + "fedcba9876543210", c.CACertHash},
		"authority": {Token, "sha256:" + strings.Repeat("0", 64)},
	} {
		r := join(t, wrong[0], wrong[1], "join", "phase", "preflight")
		assert.NotZero(t, r.ExitCode, "another %s: %s", name, r.Stdout)
	}
}
