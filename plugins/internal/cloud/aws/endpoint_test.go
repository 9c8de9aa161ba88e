package aws

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/plugins/internal/cloud/cloudtest"
)

// of returns a machine with a role, for a provider and with a file of permitted endpoints.
func of(t testing.TB, provider, permitted string) Machine {
	t.Helper()
	m := settled(instance(t, nil))
	m.Provider, m.Endpoints = provider, filepath.Join(t.TempDir(), "endpoints.yaml")
	if permitted != "" {
		require.NoError(t, os.WriteFile(m.Endpoints, []byte(permitted), 0o644)) //nolint:gosec // the file is not secret
	}
	return m
}

// TestEndpointsOfRole: the credentials of a role are for the hosts of the service, by whatever trick of a URL another is named.
func TestEndpointsOfRole(t *testing.T) {
	t.Parallel()
	for provider, service := range map[string]string{"s3": "s3", "ssm": "ssm", "secretsmanager": "secretsmanager", "awskms": "kms"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			m := of(t, provider, "")
			refuses := func(server string) bool {
				c := Config{Endpoint: server}
				if len(c.Validate()) > 0 {
					return true
				}
				_, err := m.Access(t.Context(), c, "eu-central-1")
				if err != nil {
					refused(t, err, pluginv1.CodePrecondition, "spec.providerConfig.endpoint is not a host of AWS")
				}
				return err != nil
			}
			cloudtest.Tricks(t, service+".eu-central-1.amazonaws.com", refuses)
			for _, own := range []string{
				service + "-fips.eu-central-1.amazonaws.com", service + ".eu-central-1.api.aws", service + ".dualstack.eu-central-1.amazonaws.com",
				"vpce-0a1b-c2d3." + service + ".eu-central-1.vpce.amazonaws.com", "bucket.vpce-0a1b-c2d3." + service + ".eu-central-1.vpce.amazonaws.com",
			} {
				assert.False(t, refuses("https://"+own), own)
			}
			// Everyone can have these.
			for _, other := range []string{
				"ec2-192-0-2-1.eu-central-1.compute.amazonaws.com", service + "-1.eu-central-1.elb.amazonaws.com", "a.execute-api.eu-central-1.amazonaws.com",
				"vpce-0a1b-c2d3.vpce-svc-0a1b.eu-central-1.vpce.amazonaws.com", service + ".s3.eu-central-1.amazonaws.com", "lambda.eu-central-1.amazonaws.com",
				service + ".eu-west-1.amazonaws.com", "x." + service + ".eu-central-1.amazonaws.com",
			} {
				assert.True(t, refuses("https://"+other), other)
			}
		})
	}
	m := of(t, "s3", "")
	_, err := m.Access(t.Context(), Config{Endpoint: "https://evil.example", AccessKeyID: "AKID", SecretAccessKey: secret(canary)}, "x")
	require.NoError(t, err, "credentials of the document")
	_, err = m.Access(t.Context(), Config{}, "cn-north-1")
	require.NoError(t, err, "no endpoint")
	_, err = m.Access(t.Context(), Config{Endpoint: "https://s3.cn-north-1.amazonaws.com.cn"}, "cn-north-1")
	require.NoError(t, err)
}

// TestPermittedEndpoints: a file of the machine names other servers, each for one provider.
func TestPermittedEndpoints(t *testing.T) {
	t.Parallel()
	const permitted = "s3: https://a.example https://[2001:db8::1]:9000\nssm: https://b.example\n"
	for endpoint, ok := range map[string]bool{
		"https://a.example": true, "https://A.EXAMPLE:443/": true, "https://[2001:db8::1]:9000": true,
		"https://a.example:444": false, "https://a.example.": false, "https://b.example": false, "https://x.a.example": false, "https://[2001:db8::1]": false,
	} {
		_, err := of(t, "s3", permitted).Access(t.Context(), Config{Endpoint: endpoint}, "")
		assert.Equal(t, ok, err == nil, "%s: %v", endpoint, err)
	}
	for text, want := range map[string]string{
		"s3: [https://a.example]": "is not valid", "s3: http://a.example": "has an endpoint that is not", "s3: https://a.example/x": "has an endpoint that is not",
		"s3: https://c4n4ry@a.example": "has an endpoint that is not",
	} {
		_, err := of(t, "s3", text).Access(t.Context(), Config{Endpoint: "https://a.example"}, "")
		refused(t, err, pluginv1.CodePrecondition, want)
	}
	m := of(t, "s3", permitted)
	require.NoError(t, os.Chmod(m.Endpoints, 0o666)) //nolint:gosec // it is refused
	_, err := m.Access(t.Context(), Config{Endpoint: "https://a.example"}, "")
	refused(t, err, pluginv1.CodePrecondition, "can be written by")
}
