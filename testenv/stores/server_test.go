package stores

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/authority"
)

// serve serves a handler by TLS at 127.0.0.1, and returns its URL.
func serve(t testing.TB, a authority.Authority, handler http.Handler) string {
	t.Helper()
	pair, err := tls.X509KeyPair(a.Issue(t, "localhost", func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }))
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// decode reads a request in JSON that has no other fields than a stand-in documents.
func decode(r *http.Request, into any) bool {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	return r.Header.Get("Content-Type") == "application/json" && d.Decode(into) == nil && !d.More()
}

// answer writes an answer in JSON.
func answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // the client may have left
}

// refuse answers with a status, and repeats the secrets of the request.
func refuse(w http.ResponseWriter, r *http.Request, code int) {
	answer(w, code, map[string]any{"error": map[string]any{"code": code, "message": r.URL.String(), "header": r.Header}})
}
