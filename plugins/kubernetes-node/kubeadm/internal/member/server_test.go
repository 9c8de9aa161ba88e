package member

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/release"
)

func TestServerVersion(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]release.Version{
		`{"major":"1","gitVersion":"v1.36.3"}`: {Major: 1, Minor: 36, Patch: 3},
		`{"gitVersion":"c4n4ry"}`:              {},
		`{"kind":"Status","code":401}`:         {},
		`<html>`:                               {},
	} {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/version" && len(r.Header["Authorization"]) == 0 {
				_, _ = w.Write([]byte(answer)) // the client notices
			}
		}))
		t.Cleanup(server.Close)
		got, ok := ServerVersion(t.Context(), strings.TrimPrefix(server.URL, "https://"))
		require.Equal(t, want, got, answer)
		require.Equal(t, want != release.Version{}, ok)
	}
	_, ok := ServerVersion(t.Context(), "127.0.0.1:1")
	require.False(t, ok)
}
