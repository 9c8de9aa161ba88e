package cloud

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

func hijacked(t *testing.T, text string) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte(text)) // the client may have left
		_ = conn.Close()
	}
}

// TestStatus: what a server answers decides whether another try can help.
func TestStatus(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	at := a.serve(t, func(w http.ResponseWriter, r *http.Request) {
		var code int
		_, err := fmt.Sscanf(r.URL.Path, "/c4n4ry/%d", &code)
		assert.NoError(t, err)
		if after := r.URL.Query().Get("after"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(code)
	})
	soon := url.QueryEscape(time.Now().Add(100 * time.Second).UTC().Format(http.TimeFormat))
	for path, want := range map[string]struct {
		code   pluginv1.Code
		after  time.Duration
		status string
	}{
		"408": {code: pluginv1.CodeRetry}, "425": {code: pluginv1.CodeRetry}, "500": {code: pluginv1.CodeRetry},
		"429?after=7": {code: pluginv1.CodeRetry, after: 7 * time.Second}, "503?after=1e3": {code: pluginv1.CodeRetry},
		"503?after=99999":   {code: pluginv1.CodeRetry, after: 5 * time.Minute},
		"502?after=" + soon: {code: pluginv1.CodeRetry, after: 100 * time.Second},
		"599?after=-1":      {code: pluginv1.CodeRetry},
		"401":               {code: pluginv1.CodePrecondition, status: "401"},
		"403":               {code: pluginv1.CodePrecondition, status: "403"},
		"404":               {code: pluginv1.CodePrecondition, status: "404"},
		"410":               {code: pluginv1.CodePrecondition, status: "410"},
		"400":               {code: pluginv1.CodePrecondition},
		"407":               {code: pluginv1.CodePrecondition},
		"416":               {code: pluginv1.CodePrecondition},
		"204":               {code: pluginv1.CodePrecondition},
		"206":               {code: pluginv1.CodePrecondition},
		"304":               {code: pluginv1.CodePrecondition},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			_, err := get(t.Context(), t, a.client(), at+"/c4n4ry/"+path)
			e := refusal(t, err, want.code, strings.TrimPrefix(at, "https://")+" answers with the status "+path[:3])
			assert.InDelta(t, want.after.Seconds(), e.RetryAfter.Seconds(), 30)
			assert.Equal(t, want.status, e.Facts[pluginv1.FactStatus])
		})
	}
	t.Run("rights that spread", func(t *testing.T) {
		t.Parallel()
		c := a.client()
		c.SpreadUntil = time.Now().Add(time.Hour)
		for code, want := range map[string]pluginv1.Code{
			"403": pluginv1.CodeRetry, "404": pluginv1.CodeRetry, "401": pluginv1.CodePrecondition, "410": pluginv1.CodePrecondition,
		} {
			_, err := get(t.Context(), t, c, at+"/c4n4ry/"+code)
			refused(t, err, want, code)
		}
	})
}

// TestAnswers: of what a server does wrong, each is a Retry if another try can differ.
func TestAnswers(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		code    pluginv1.Code
		text    string
	}{
		"compressed": {func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, []string{"identity"}, r.Header.Values("Accept-Encoding"))
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write([]byte("text"))
			_ = z.Close()
		}, pluginv1.CodePrecondition, "sends a compressed object"},
		"large headers": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 2<<20))
		}, pluginv1.CodePrecondition, "headers are larger than 64 KiB"},
		"no HTTP":        {hijacked(t, "220 "+canary+" ESMTP\r\n"), pluginv1.CodePrecondition, "does not answer by HTTP"},
		"HTTP/2 alone":   {hijacked(t, "\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80"), pluginv1.CodePrecondition, "does not answer by HTTP"},
		"nothing":        {hijacked(t, ""), pluginv1.CodeRetry, "the connection ended before an answer"},
		"half a header":  {hijacked(t, "HTTP/1.1 200 OK\r\nContent-"), pluginv1.CodeRetry, "the connection ended before an answer"},
		"no length":      {hijacked(t, "HTTP/1.1 200 OK\r\n\r\ntext"), pluginv1.CodePrecondition, "sends neither the length"},
		"no length, 1.0": {hijacked(t, "HTTP/1.0 200 OK\r\n\r\ntext"), pluginv1.CodePrecondition, "sends neither the length"},
		"bad chunk":      {hijacked(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+canary+"\r\n"), pluginv1.CodeRetry, "ended before"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := a.serve(t, test.handler)
			_, err := get(t.Context(), t, a.client(), at)
			refused(t, err, test.code, test.text)
			refused(t, err, test.code, strings.TrimPrefix(at, "https://"))
		})
	}
	t.Run("no length, but a digest", func(t *testing.T) {
		t.Parallel()
		c := a.client()
		c.Digest = true
		data, err := get(t.Context(), t, c, a.serve(t, hijacked(t, "HTTP/1.0 200 OK\r\n\r\ntext")))
		require.NoError(t, err)
		assert.Equal(t, "text", string(data))
	})
	t.Run("cookies", func(t *testing.T) {
		t.Parallel()
		data, err := get(t.Context(), t, a.client(), a.serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
			if r.URL.Path == "/" {
				http.Redirect(w, r, "/next", http.StatusFound)
			}
			assert.Empty(t, r.Header.Values("Cookie"))
			assert.Empty(t, r.Header.Values("Referer"))
			_, _ = w.Write([]byte("text"))
		})+"/")
		require.NoError(t, err)
		assert.Equal(t, "text", string(data))
	})
}

// TestCut: an object that is cut at any tenth is never whole.
func TestCut(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	object := bytes.Repeat([]byte("0123456789"), 30<<10)
	for _, head := range []string{fmt.Sprintf("Content-Length: %d\r\n\r\n", len(object)), fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", len(object))} {
		for tenth := range 10 {
			at := a.serve(t, hijacked(t, "HTTP/1.1 200 OK\r\n"+head+string(object[:len(object)*tenth/10])))
			data, err := get(t.Context(), t, a.client(), at)
			refused(t, err, pluginv1.CodeRetry, "ended before the object was complete")
			assert.Equal(t, len(object)*tenth/10, len(data))
		}
	}
	at := a.serve(t, hijacked(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(object), object)))
	_, err := get(t.Context(), t, a.client(), at)
	refused(t, err, pluginv1.CodeRetry, "ended before the object was complete") // the last chunk is missing
}

// TestConnections: errors without an answer name the host and the port.
func TestConnections(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	for name, test := range map[string]struct {
		url, text string
		code      pluginv1.Code
	}{
		"refused":     {"https://" + closed.Addr().String(), "cannot be reached: connection refused", pluginv1.CodeRetry},
		"no name":     {"https://absent.invalid/c4n4ry", "absent.invalid:443 cannot be reached: the name", pluginv1.CodeRetry},
		"no TLS":      {strings.Replace(plain.URL, "http", "https", 1), "does not answer by TLS", pluginv1.CodePrecondition},
		"TLS 1.1":     {a.serve(t, nil, func(s *httptest.Server) { s.TLS.MaxVersion = tls.VersionTLS11 }), "ends the TLS handshake", pluginv1.CodePrecondition},
		"certificate": {a.serve(t, nil, func(s *httptest.Server) { s.TLS.ClientAuth = tls.RequireAnyClientCert }), "", 0},
		"certificate, 1.2": {a.serve(t, nil, func(s *httptest.Server) {
			s.TLS.ClientAuth = tls.RequireAnyClientCert
			s.TLS.MaxVersion = tls.VersionTLS12
		}), "ends the TLS handshake", pluginv1.CodePrecondition},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := get(t.Context(), t, a.client(), test.url)
			u, parseErr := url.Parse(test.url)
			require.NoError(t, parseErr)
			if test.code == 0 { // TLS 1.3 refuses after the handshake, and the alert can be lost with the connection
				test.code = pluginv1.AsError(err).Code
				assert.Contains(t, []pluginv1.Code{pluginv1.CodeRetry, pluginv1.CodePrecondition}, test.code)
			}
			refused(t, err, test.code, test.text)
			refused(t, err, test.code, hostPort(u))
			t.Log(err)
		})
	}
	// A server that offers both serves by HTTP/1.1.
	data, err := get(t.Context(), t, a.client(), a.serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.Proto)) },
		func(s *httptest.Server) { s.EnableHTTP2 = true }))
	require.NoError(t, err)
	assert.Equal(t, "HTTP/1.1", string(data))
}
