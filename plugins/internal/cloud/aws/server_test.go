package aws

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

const canary = "c4n4ry/of+the=document"

func secret(text string) v1alpha1.Secret { return v1alpha1.NewSecret([]byte(text)) }

// serve serves by TLS, and returns a configuration with the endpoint and keys.
func serve(t testing.TB, handler http.HandlerFunc) Config {
	t.Helper()
	s := httptest.NewTLSServer(handler)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return Config{Endpoint: s.URL, CA: string(ca), AccessKeyID: "AKID", SecretAccessKey: secret(canary), SessionToken: secret("t0ken")}
}

// settled is a machine whose plugin started long ago, so that no status is a Retry because rights may still spread.
func settled(metadata ...string) Machine { return Machine{Metadata: metadata, Now: time.Now} }

type value struct{ Value string }

// call calls an action that answers a value.
func call(t testing.TB, m Machine, c Config) (string, error) {
	t.Helper()
	a, err := m.Access(t.Context(), c, "eu-central-1")
	if err != nil {
		return "", err
	}
	var v value
	err = a.Call(t.Context(), "ssm", "AmazonSSM.GetParameter", value{"name"}, &v)
	return v.Value, err
}

// refused requires an error of the contract without a secret.
func refused(t testing.TB, err error, code pluginv1.Code, text string) {
	t.Helper()
	_ = refusal(t, err, code, text)
}

// refusal requires an error of the contract without a secret, and returns it.
func refusal(t testing.TB, err error, code pluginv1.Code, text string) *pluginv1.Error {
	t.Helper()
	require.Error(t, err)
	e := pluginv1.AsError(err)
	assert.Equal(t, code, e.Code, "%v", e)
	assert.Contains(t, e.Message, text)
	for _, part := range []string{e.Message, e.Hint, e.Detail} {
		assert.NotContains(t, part, "c4n4ry")
		assert.NotContains(t, part, "t0ken")
	}
	return e
}
