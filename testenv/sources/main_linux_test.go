package sources

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/tools"
)

// program is the name under which this test binary makes a call on a node.
const program = "sources-call"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != program {
		os.Exit(m.Run())
	}
	if err := onNode(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// onNode makes the call that is given on standard input: arguments are no place for secrets.
func onNode() error {
	var c Call
	if err := json.NewDecoder(os.Stdin).Decode(&c); err != nil {
		return err
	}
	r, err := Do(context.Background(), c)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// built returns the directory with these programs of the checkout.
func built(t testing.TB, sources map[string]string) string {
	t.Helper()
	needs.Tier(t, needs.System)
	dir := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), dir, sources))
	return dir
}

const provider = "machineadm-remote-configuration-provider-http"

func httpPlugin(t testing.TB) string {
	t.Helper()
	return filepath.Join(built(t, map[string]string{provider: "plugins/remote-config/http"}), provider)
}

// serve serves a handler by TLS as source.example and 127.0.0.1, and returns its URL.
func serve(t testing.TB, a authority.Authority, handler http.HandlerFunc) string {
	t.Helper()
	pair, err := tls.X509KeyPair(a.Issue(t, "source.example", onLoopback))
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(handler)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}} //nolint:gosec // of a test
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

func do(t testing.TB, c Call) Result {
	t.Helper()
	r, err := Do(t.Context(), c)
	require.NoError(t, err)
	return r
}

func secret(text string) map[string]any { return map[string]any{"value": text} }

// spec is the spec of a RemoteConfig with the authority and further fields of providerConfig.
func spec(a authority.Authority, uri string, config map[string]any) map[string]any {
	all := map[string]any{"ca": string(a.Certificate)}
	for name, value := range config {
		all[name] = value
	}
	return map[string]any{"provider": "http", "uri": uri, "providerConfig": all}
}
