package cloud

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// statuses are those by which a source answers that it has nothing, and 400, which means so at a token server.
var statuses = map[int]string{400: "", 401: "401", 403: "403", 404: "404", 410: "410"}

// TestOtherServers: what a metadata service or a token server answers is not the source's answer that it has nothing, except that a
// token server refuses the credentials.
func TestOtherServers(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for code := range statuses {
		handler := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
		metadata := httptest.NewServer(http.HandlerFunc(handler))
		t.Cleanup(metadata.Close)
		var into any
		_, err := Metadata(t.Context(), metadata.URL, nil, &into, time.Time{})
		assert.Empty(t, refusal(t, err, pluginv1.CodePrecondition, http.StatusText(code)).Facts)
		assert.Equal(t, code, Status(err))
		_, err = Token(t.Context(), a.client(), a.serve(t, handler), url.Values{"a": {canary}})
		e := refusal(t, err, pluginv1.CodePrecondition, http.StatusText(code))
		if code <= 401 {
			assert.Equal(t, map[string]string{pluginv1.FactStatus: "401"}, e.Facts)
			continue
		}
		assert.Empty(t, e.Facts)
	}
}

// TestAnswerOfProxy: a proxy answers a request of plain http itself, so that the answer need not be the server's. By TLS, and through
// a proxy of SOCKS, it is the server's.
func TestAnswerOfProxy(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "a.example", r.URL.Host, "the form of a request to a proxy")
		code, err := strconv.Atoi(r.URL.Path[1:])
		assert.NoError(t, err)
		w.WriteHeader(code)
	}))
	t.Cleanup(proxy.Close)
	at, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	for code, status := range statuses {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.example/"+strconv.Itoa(code), nil)
		require.NoError(t, err)
		x := &exchange{client: Client{Direct: true, Digest: true}, caller: t.Context(), first: r, request: r, proxy: at}
		answer, err := x.send()
		require.NoError(t, err)
		_, err = x.checked(answer) //nolint:bodyclose // checked closes it with the error
		assert.Empty(t, refusal(t, err, pluginv1.CodePrecondition, "through the proxy "+at.Host).Facts)
		for scheme, through := range map[string]string{"https": "http", "http": "socks5"} {
			r.URL.Scheme, x.proxy = scheme, &url.URL{Scheme: through, Host: "proxy.example"}
			e := pluginv1.AsError(x.status(&http.Response{StatusCode: code}))
			assert.Equal(t, status, e.Facts[pluginv1.FactStatus], "%d by %s", code, scheme)
		}
	}
}
