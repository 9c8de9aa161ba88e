package token_test

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/host/controller/token"
)

func TestDerive(t *testing.T) {
	t.Parallel()
	key := bytes.Repeat([]byte{7}, token.KeyBytes)
	first := token.Derive(key, "ns", "worker-1", 1)
	require.Regexp(t, regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`), first.String(), "the form of bootstrap tokens")
	require.Equal(t, first, token.Derive(key, "ns", "worker-1", 1), "the same inputs are the same token")
	// The token of a machine must not change between releases: a machine may have it while its controller is upgraded.
	require.Equal(t, "dfbsnb.4ex4q4ih42f2hy6g", first.String())

	others := map[string]token.Token{
		"epoch":     token.Derive(key, "ns", "worker-1", 2),
		"name":      token.Derive(key, "ns", "worker-2", 1),
		"namespace": token.Derive(key, "other", "worker-1", 1),
		"key":       token.Derive(bytes.Repeat([]byte{8}, token.KeyBytes), "ns", "worker-1", 1),
		"border":    token.Derive(key, "ns-worker", "1", 1),
	}
	for what, other := range others {
		require.NotEqual(t, first.ID, other.ID, what)
		require.NotEqual(t, first.Secret, other.Secret, what)
	}
	require.NotContains(t, first.Secret, first.ID)
}
