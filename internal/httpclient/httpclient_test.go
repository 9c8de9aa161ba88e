package httpclient

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const canary = "c4n4ry"

// servers are two, one by TLS and one without. What they redirect to is in the query of a request.
type servers struct {
	tls, plain *httptest.Server
	mutex      sync.Mutex
	got        []*http.Request
}

func serve(t *testing.T) *servers {
	t.Helper()
	s := &servers{}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mutex.Lock()
		s.got = append(s.got, r)
		s.mutex.Unlock()
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}
	})
	s.tls, s.plain = httptest.NewTLSServer(handler), httptest.NewServer(handler)
	t.Cleanup(func() { s.tls.Close(); s.plain.Close() })
	return s
}

// client connects every name to one of the servers, by the port.
func (s *servers) client(redirects int) *http.Client {
	return New(Options{Redirects: redirects, TLS: &tls.Config{InsecureSkipVerify: true}, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		to := s.tls.Listener.Addr().String()
		if strings.HasSuffix(address, ":80") {
			to = s.plain.Listener.Addr().String()
		}
		return (&net.Dialer{}).DialContext(ctx, network, to)
	}})
}

// chain returns the URL of a first server that redirects to the others in turn.
func chain(all ...string) string {
	next := ""
	for i := len(all) - 1; i >= 0; i-- {
		u, _ := url.Parse(all[i])
		q := url.Values{"sig": {canary}}
		if next != "" {
			q.Set("to", next)
		}
		u.RawQuery = q.Encode()
		next = u.String()
	}
	return next
}

// TestRedirects is the table of the rules: which redirects are followed, and what the last server sees.
func TestRedirects(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		chain   []string
		method  string
		limit   int
		problem string
		sees    string // Authorization, X-Key and Cookie at the end
		count   int
	}{
		"none":                 {chain: []string{"https://a.example", "https://a.example/x"}, count: 1, sees: canary},
		"same server":          {chain: []string{"https://a.example", "https://A.EXAMPLE:443/x"}, limit: 5, count: 2, sees: canary},
		"another server":       {chain: []string{"https://a.example", "https://b.example"}, limit: 5, count: 2},
		"below the server":     {chain: []string{"https://a.example", "https://b.a.example"}, limit: 5, count: 2},
		"another port":         {chain: []string{"https://a.example", "https://a.example:444"}, limit: 5, count: 2},
		"back again":           {chain: []string{"https://a.example", "https://b.example", "https://a.example"}, limit: 5, count: 3},
		"to TLS":               {chain: []string{"http://a.example", "https://a.example"}, limit: 5, count: 2},
		"without TLS":          {chain: []string{"http://a.example", "http://a.example/x"}, limit: 5, count: 2, sees: canary},
		"from TLS":             {chain: []string{"https://a.example", "http://a.example"}, limit: 5, count: 1, problem: "from https to http"},
		"from TLS, later":      {chain: []string{"http://a.example", "https://a.example", "http://a.example"}, limit: 5, count: 2, problem: "from https to http"},
		"another scheme":       {chain: []string{"http://a.example", "ftp://a.example"}, limit: 5, count: 1, problem: "to another scheme"},
		"a file":               {chain: []string{"http://a.example", "file:///etc/passwd"}, limit: 5, count: 1, problem: "to another scheme"},
		"credentials":          {chain: []string{"https://a.example", "https://u:p@a.example"}, limit: 5, count: 1, problem: "with credentials"},
		"limit":                {chain: []string{"https://a.example", "https://a.example/1", "https://a.example/2"}, limit: 2, count: 3, sees: canary},
		"more than the limit":  {chain: []string{"https://a.example", "https://a.example/1", "https://a.example/2"}, limit: 1, count: 2, problem: "more than 1 times"},
		"POST":                 {chain: []string{"https://a.example", "https://a.example/x"}, method: http.MethodPost, limit: 5, count: 1, sees: canary},
		"PUT, to another host": {chain: []string{"https://a.example", "https://b.example"}, method: http.MethodPut, limit: 5, count: 1, sees: canary},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			r, err := http.NewRequestWithContext(t.Context(), test.method, chain(test.chain...), strings.NewReader(""))
			require.NoError(t, err)
			for _, header := range []string{"Authorization", "X-Key", "Cookie"} {
				r.Header.Set(header, canary)
			}
			answer, err := s.client(test.limit).Do(r)
			if test.problem != "" {
				refused := new(RedirectError)
				require.ErrorAs(t, err, &refused)
				assert.Contains(t, refused.Error(), test.problem)
				assert.NotContains(t, refused.Error(), canary)
			} else {
				require.NoError(t, err)
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
			require.Len(t, s.got, test.count)
			for _, got := range s.got {
				assert.Empty(t, got.Header.Get("Referer"))
			}
			if test.problem == "" {
				last := s.got[len(s.got)-1]
				for _, header := range []string{"Authorization", "X-Key", "Cookie"} {
					assert.Equal(t, test.sees, last.Header.Get(header), header)
				}
			}
		})
	}
}

// TestLimits: an old TLS is raised, headers and waiting are bounded, and nothing of the environment is used unasked.
func TestLimits(t *testing.T) {
	t.Parallel()
	transport := Transport(Options{TLS: &tls.Config{MinVersion: tls.VersionTLS10, ServerName: "a"}}) //nolint:gosec // is raised
	assert.Equal(t, uint16(tls.VersionTLS12), transport.TLSClientConfig.MinVersion)
	assert.Equal(t, "a", transport.TLSClientConfig.ServerName)
	assert.Nil(t, transport.Proxy)
	assert.NotZero(t, transport.MaxResponseHeaderBytes)
	assert.NotZero(t, transport.ResponseHeaderTimeout)
	assert.NotZero(t, transport.TLSHandshakeTimeout)
	assert.Equal(t, uint16(tls.VersionTLS13), Transport(Options{TLS: &tls.Config{MinVersion: tls.VersionTLS13}}).TLSClientConfig.MinVersion)
}

// TestSilence: a server that accepts a connection and is silent ends a request, in fake time.
func TestSilence(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]time.Duration{"https://source.example/": handshakeTime, "http://source.example/": answerTime} {
		t.Run(uri, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := New(Options{Dial: func(context.Context, string, string) (net.Conn, error) {
					ours, silent := net.Pipe()
					go func() { _, _ = io.Copy(io.Discard, silent) }() // until the client closes its end
					return ours, nil
				}})
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, uri, nil)
				require.NoError(t, err)
				began := time.Now()
				response, err := client.Do(request)
				if err == nil {
					_ = response.Body.Close() // no answer comes
				}
				var failure net.Error
				require.ErrorAs(t, err, &failure)
				assert.True(t, failure.Timeout())
				assert.Equal(t, want, time.Since(began))
			})
		})
	}
}
