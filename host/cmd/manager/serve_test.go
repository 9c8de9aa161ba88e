package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestServerHost(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"https://machineadm.example.com": "machineadm.example.com", "https://192.0.2.1:9443": "192.0.2.1", "https://[2001:db8::1]:9443": "2001:db8::1",
	} {
		host, err := (&options{serverURL: given}).serverHost()
		require.NoError(t, err, given)
		assert.Equal(t, want, host)
	}
	for _, wrong := range []string{
		"", "machineadm.example.com", "http://machineadm.example.com", "https://", "https://:9443", "https://user@example.com", "https://example.com/", "https://example.com/path",
		"https://example.com?x", "https://example.com#x", "https://Example.com", "https://example.com:port", "https://unset.invalid",
	} {
		_, err := (&options{serverURL: wrong}).serverHost()
		assert.ErrorContains(t, err, "--server-url", wrong)
	}
}
