package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machineadm/machineadm/internal/httpclient"
)

// canary is in everything that no log line and no answer may have.
const canary = "c4n4ry"

// tokenOf is the bearer of which each of 32 bytes is b.
func tokenOf(b byte) string {
	return base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{b}, bearerBytes))
}

// backend has a config ns/NAME for each NAME of its switch, with one bearer.
type backend struct {
	mutex sync.Mutex
	asked []string // METHOD NAME
	last  []byte   // the newest report
	wait  func(context.Context) error
}

func (b *backend) find(ctx context.Context, method string, of types.NamespacedName, bearer string) error {
	b.mutex.Lock()
	b.asked = append(b.asked, method+" "+of.Name)
	b.mutex.Unlock()
	switch {
	case of.Namespace != "ns" || bearer != tokenOf(1):
		return ErrDenied
	case of.Name == "broken":
		return errors.New(canary)
	case of.Name == "panics":
		panic(canary)
	case of.Name == "waits":
		return b.wait(ctx)
	}
	return nil
}

func (b *backend) Authorize(ctx context.Context, of types.NamespacedName, bearer string) error {
	return b.find(ctx, "Authorize", of, bearer)
}

func (b *backend) Data(ctx context.Context, of types.NamespacedName, bearer string) ([]byte, error) {
	err := b.find(ctx, "Data", of, bearer)
	switch {
	case err != nil, of.Name == "empty":
		return nil, err
	case of.Name == "small":
		return []byte(stream[:4096]), nil
	}
	return []byte(stream), nil
}

func (b *backend) Report(ctx context.Context, of types.NamespacedName, bearer string, sequence uint64, body []byte) error {
	if err := b.find(ctx, "Report", of, bearer); err != nil {
		return err
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch {
	case sequence < 7:
		return ErrOld
	case !bytes.HasPrefix(body, []byte("{")):
		return &InvalidError{"the report is no JSON"}
	}
	b.last = body
	return nil
}

func (b *backend) calls() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.asked
}

var stream = "# " + canary + "\n" + strings.Repeat("x", 100_000)

// endpoint is a server that runs, and what its tests need.
type endpoint struct {
	*Server
	*backend
	registry *prometheus.Registry
	address  string
	trust    *x509.CertPool

	mutex sync.Mutex
	lines []string
}

// newEndpoint returns an endpoint that does not run yet.
func newEndpoint(t testing.TB, change func(*Options)) *endpoint {
	t.Helper()
	e := &endpoint{backend: &backend{}, registry: prometheus.NewRegistry(), trust: x509.NewCertPool()}
	o := Options{Backend: e.backend, Registry: e.registry, Log: e.log(), Limits: DefaultLimits()}
	certificate, key, err := NewAuthority(time.Now())
	require.NoError(t, err)
	o.Certificates, err = FromAuthority(certificate, key, "127.0.0.1", o.Log, time.Now)
	require.NoError(t, err)
	if change != nil {
		change(&o)
	}
	e.trust.AppendCertsFromPEM(o.Certificates.Trust())
	e.Server, err = New(o)
	require.NoError(t, err)
	return e
}

// log returns a logger of all levels.
func (e *endpoint) log() logr.Logger {
	return funcr.New(func(prefix, args string) {
		e.mutex.Lock()
		defer e.mutex.Unlock()
		e.lines = append(e.lines, prefix+" "+args)
	}, funcr.Options{Verbosity: 9})
}

func (e *endpoint) logged() string {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return strings.Join(e.lines, "\n")
}

// start runs an endpoint on this machine until the end of the test.
func start(t testing.TB, change func(*Options)) *endpoint {
	t.Helper()
	e := newEndpoint(t, change)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	e.address = l.Addr().String()
	e.run(t.Context(), t, l)
	return e
}

// run serves until the context ends, at the latest with the test.
func (e *endpoint) run(ctx context.Context, t testing.TB, l net.Listener) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- e.serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
		assert.NotContains(t, e.logged(), canary)
		assert.NotContains(t, e.logged(), tokenOf(1))
	})
}

func (e *endpoint) config() *tls.Config { return &tls.Config{RootCAs: e.trust} }

// dial opens a connection and completes its handshake.
func (e *endpoint) dial(t testing.TB) *tls.Conn {
	t.Helper()
	c, err := tls.Dial("tcp", e.address, e.config())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// reply is an answer that was read.
type reply struct {
	*http.Response
	text string
}

// do sends a request with the right bearer, unless the headers have another Authorization.
func (e *endpoint) do(t testing.TB, method, path, body string, headers ...string) reply {
	t.Helper()
	client := httpclient.New(httpclient.Options{TLS: e.config()})
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://"+e.address+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+tokenOf(1))
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Del(headers[i]); headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	a, err := client.Do(r)
	require.NoError(t, err)
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	return reply{a, string(text)}
}

// TestAnswers: each request has the answer that plugins/remote-config/http expects.
func TestAnswers(t *testing.T) {
	t.Parallel()
	var e *endpoint
	t.Cleanup(func() { // the server has ended
		assert.InDelta(t, 7, testutil.ToFloat64(e.handler.metrics.requests.WithLabelValues(routeData, "200")), 0)
		assert.InDelta(t, 6*len(stream), testutil.ToFloat64(e.handler.metrics.bytes.WithLabelValues(routeData, sent)), 1000, "and lines of errors")
	})
	e = start(t, func(o *Options) { o.Limits.BodyBytes = 100 << 10 })
	const sequence = "Machineadm-Sequence"
	for name, c := range map[string]struct {
		request string
		body    string
		headers []string
		code    int
		text    string
	}{
		"the stream":                   {request: "GET /v1/data/ns/worker", code: 200, text: stream},
		"an empty stream":              {request: "GET /v1/data/ns/empty", code: 200},
		"with a query":                 {request: "GET /v1/data/ns/worker?" + canary, code: 200, text: stream},
		"a range":                      {request: "GET /v1/data/ns/worker", headers: []string{"Range", "bytes=1-2"}, code: 200, text: stream},
		"a compressed one":             {request: "GET /v1/data/ns/worker", headers: []string{"Accept-Encoding", "gzip"}, code: 200, text: stream},
		"a body for a GET":             {request: "GET /v1/data/ns/worker", body: canary, code: 200, text: stream},
		"the scheme in lower case":     {request: "GET /v1/data/ns/worker", headers: []string{"Authorization", "bearer " + tokenOf(1)}, code: 200, text: stream},
		"another bearer":               {request: "GET /v1/data/ns/worker", headers: []string{"Authorization", "Bearer " + tokenOf(2)}, code: 403, text: "denied\n"},
		"another config":               {request: "GET /v1/data/other/worker", code: 403, text: "denied\n"},
		"no Authorization":             {request: "GET /v1/data/ns/worker", headers: []string{"Authorization", ""}, code: 401},
		"Basic":                        {request: "GET /v1/data/ns/worker", headers: []string{"Authorization", "Basic " + tokenOf(1)}, code: 401},
		"a bearer with padding":        {request: "GET /v1/data/ns/worker", headers: []string{"Authorization", "Bearer " + tokenOf(1) + "="}, code: 401},
		"a short bearer":               {request: "GET /v1/data/ns/worker", headers: []string{"Authorization", "Bearer " + tokenOf(1)[:42]}, code: 401},
		"a long bearer":                {request: "GET /v1/data/ns/worker", headers: []string{"Authorization", "Bearer " + strings.Repeat(tokenOf(1), 2)}, code: 401},
		"another last bit":             {request: "GET /v1/data/ns/worker", headers: []string{"Authorization", "Bearer " + tokenOf(1)[:42] + "F"}, code: 401},
		"an error of the backend":      {request: "GET /v1/data/ns/broken", code: 503, text: "not available\n"},
		"a panic of the backend":       {request: "GET /v1/data/ns/panics", code: 500, text: "failed\n"},
		"HEAD":                         {request: "HEAD /v1/data/ns/worker", code: 405},
		"POST of data":                 {request: "POST /v1/data/ns/worker", body: canary, code: 405, text: "only GET\n"},
		"GET of a report":              {request: "GET /v1/report/ns/worker", code: 405, text: "only POST\n"},
		"another method":               {request: "BREW /v1/data/ns/worker", code: 405, text: "only GET\n"},
		"another path":                 {request: "GET /metrics", code: 404},
		"releases are off":             {request: "GET /v1/release/manifest.json", code: 404},
		"a report":                     {request: "POST /v1/report/ns/worker", body: "{}", headers: []string{sequence, "7"}, code: 204},
		"an old report":                {request: "POST /v1/report/ns/worker", body: "{}", headers: []string{sequence, "6"}, code: 204},
		"the largest number":           {request: "POST /v1/report/ns/worker", body: "{}", headers: []string{sequence, "18446744073709551615"}, code: 204},
		"a larger number":              {request: "POST /v1/report/ns/worker", body: "{}", headers: []string{sequence, "18446744073709551616"}, code: 400},
		"no number":                    {request: "POST /v1/report/ns/worker", body: "{}", code: 400, text: "exactly one Machineadm-Sequence is required\n"},
		"a negative number":            {request: "POST /v1/report/ns/worker", body: "{}", headers: []string{sequence, "-1"}, code: 400},
		"an invalid report":            {request: "POST /v1/report/ns/worker", body: canary, headers: []string{sequence, "7"}, code: 400, text: "the report is no JSON\n"},
		"a report of another":          {request: "POST /v1/report/ns/worker", body: "{}", headers: []string{sequence, "7", "Authorization", "Bearer " + tokenOf(2)}, code: 403},
		"a report, no bearer":          {request: "POST /v1/report/ns/worker", body: "{}", headers: []string{sequence, "7", "Authorization", ""}, code: 401},
		"a report, error":              {request: "POST /v1/report/ns/broken", body: "{}", headers: []string{sequence, "7"}, code: 503},
		"a report, panic":              {request: "POST /v1/report/ns/panics", body: "{}", headers: []string{sequence, "7"}, code: 500},
		"a report of the largest size": {request: "POST /v1/report/ns/worker", body: "{" + strings.Repeat(" ", 100<<10-1), headers: []string{sequence, "7"}, code: 204},
		"a report that is too large":   {request: "POST /v1/report/ns/worker", body: "{" + strings.Repeat(" ", 100<<10), headers: []string{sequence, "7"}, code: 413, text: "a report has at most 102400 bytes\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			method, path, _ := strings.Cut(c.request, " ")
			a := e.do(t, method, path, c.body, c.headers...)
			text := a.text
			require.Equal(t, c.code, a.StatusCode, text)
			if c.text != "" {
				assert.Equal(t, c.text, text)
			}
			assert.Equal(t, "HTTP/1.1", a.Proto)
			assert.Equal(t, c.code == 503, a.Header.Get("Retry-After") != "")
			assert.Equal(t, c.code == 401, a.Header.Get("WWW-Authenticate") == "Bearer")
			assert.Equal(t, c.code == 405, a.Header.Get("Allow") != "")
			assert.Equal(t, "no-store", a.Header.Get("Cache-Control"))
			assert.Empty(t, a.TransferEncoding)
			assert.Empty(t, a.Header.Values("Content-Encoding"))
			if c.code != 204 && method != http.MethodHead {
				assert.Equal(t, int64(len(text)), a.ContentLength)
			}
			if c.code != 200 {
				assert.NotContains(t, text, canary)
			}
		})
	}
}

// TestPaths: a path has one spelling. Each of these is sent as it is.
func TestPaths(t *testing.T) {
	t.Parallel()
	e := start(t, func(o *Options) { o.Releases = t.TempDir() })
	for code, paths := range map[string][]string{
		"200": {
			"/v1/data/ns/worker",
			"https://127.0.0.1/v1/data/ns/worker", // the form for a proxy
			"/v1/data/ns/" + strings.Repeat("a", 253),
			"/v1/data/ns/worker?/../x",
		},
		"400": {
			"/v1/data/ns/worker\x00",
			"/v1/data/ns/%",
			"http://[::1]:namedport/v1/data/ns/worker",
		},
		"403": {
			"/v1/data/" + strings.Repeat("n", 63) + "/a",
		},
		"404": {
			"/v1/data/ns/../ns/worker",
			"/v1/data/ns/%2e%2e/worker",
			"/v1/data/ns%2fworker",
			"/v1/data/ns/w%6frker",
			"/v1/d%61ta/ns/worker",
			"//v1/data/ns/worker",
			"/v1//data/ns/worker",
			"/v1/data//worker",
			"/v1/data/ns/",
			"/v1/data/ns",
			"/v1/data/",
			"/v1/data",
			"/v1/",
			"/",
			"*",
			"/v1/data/ns/worker/",
			"/v1/data/ns/worker/x",
			"/v1/data/ns/./worker",
			"/v1/data/NS/worker",
			"/V1/data/ns/worker",
			"/v1/data/ns/worker;x",
			"/v1/data/ns/worker%00",
			"/v1/data/ns/worker\\",
			"/v1/data/ns/w\u00f6rker",
			"/v1/data/ns/" + strings.Repeat("a", 300),
			"/v1/data/" + strings.Repeat("n", 300) + "/a",
			"/v1/data/a.b/a",
			"/v1/release/",
			"/v1/release/../secret",
			"/v1/release/a/../../secret",
			"/v1/release/.hidden",
			"/v1/release/a/.hidden",
			"/v1/release//etc/passwd",
			"/v1/release/%2e%2e/secret",
			"/v1/release/C:\\x",
			"/v1/none/ns/worker",
			"/v1/data/ns/worker#x", // a client sends no fragment
		},
		"405": {
			"/v1/report/ns/worker",
		},
		"431": {
			"/v1/data/ns/" + strings.Repeat("a", 21<<10), // 16 KiB, and what net/http adds
		},
	} {
		for _, path := range paths {
			answer := e.raw(t, "GET "+path+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+tokenOf(1)+"\r\n\r\n")
			assert.Equal(t, "HTTP/1.1 "+code+" ", answer[:min(len(answer), 13)], path)
			assert.NotContains(t, answer, "\r\nLocation:", path)
		}
	}
}

// raw sends a text and returns all that comes back.
func (e *endpoint) raw(t testing.TB, text string) string {
	t.Helper()
	c := e.dial(t)
	_, _ = io.WriteString(c, text) // the server may answer before it has all, and close
	answer, _ := io.ReadAll(c)
	return string(answer)
}

// TestGarbage: what is no request gets one answer at most, and the next connection is served.
func TestGarbage(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	authorization := "Host: x\r\nAuthorization: Bearer " + tokenOf(1) + "\r\n"
	for name, c := range map[string]struct{ request, begin string }{
		"random":                {"\x00\x01\x02\xff\r\n\r\n", "HTTP/1.1 400 "},
		"no host":               {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
		"HTTP/2":                {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 404 "},
		"HTTP/3.0":              {"GET / HTTP/3.0\r\n\r\n", "HTTP/1.1 505 "},
		"an upgrade to HTTP/2":  {"GET /v1/data/ns/worker HTTP/1.1\r\n" + authorization + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\n\r\n", "HTTP/1.1 200 "},
		"two bearers":           {"GET /v1/data/ns/worker HTTP/1.1\r\n" + authorization + "Authorization: Bearer " + tokenOf(2) + "\r\n\r\n", "HTTP/1.1 401 "},
		"two lengths":           {"POST /v1/report/ns/worker HTTP/1.1\r\n" + authorization + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 400 "},
		"length and chunks":     {"POST /v1/report/ns/worker HTTP/1.1\r\n" + authorization + "Machineadm-Sequence: 7\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "HTTP/1.1 204 "},
		"another encoding":      {"POST /v1/report/ns/worker HTTP/1.1\r\n" + authorization + "Transfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 501 "},
		"two numbers":           {"POST /v1/report/ns/worker HTTP/1.1\r\n" + authorization + "Machineadm-Sequence: 7\r\nMachineadm-Sequence: 8\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 400 "},
		"a chunk of garbage":    {"POST /v1/report/ns/worker HTTP/1.1\r\n" + authorization + "Machineadm-Sequence: 7\r\nTransfer-Encoding: chunked\r\n\r\n" + canary + "\r\n", "HTTP/1.1 400 "},
		"chunks without length": {"POST /v1/report/ns/worker HTTP/1.1\r\n" + authorization + "Machineadm-Sequence: 7\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "HTTP/1.1 204 "},
		"pipelined garbage":     {"GET /v1/data/ns/empty HTTP/1.1\r\n" + authorization + "\r\n" + strings.Repeat(canary, 1000), "HTTP/1.1 200 "},
		"pipelined requests":    {strings.Repeat("GET /v1/data/ns/empty HTTP/1.1\r\n"+authorization+"\r\n", 3), "HTTP/1.1 200 "},
		"CONNECT":               {"CONNECT x:1 HTTP/1.1\r\n" + authorization + "\r\n", "HTTP/1.1 404 "},
		"HTTP/1.0":              {"GET /v1/data/ns/empty HTTP/1.0\r\n" + authorization + "\r\n", "HTTP/1.0 200 "},
		"OPTIONS":               {"OPTIONS * HTTP/1.1\r\n" + authorization + "\r\n", "HTTP/1.1 404 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := e.raw(t, c.request)
			assert.Equal(t, c.begin, answer[:min(len(answer), len(c.begin))])
			assert.LessOrEqual(t, strings.Count(answer, "HTTP/1.1 "), 1)
			assert.Equal(t, stream, e.do(t, http.MethodGet, "/v1/data/ns/worker", "").text)
		})
	}
}

// TestTLS: TLS before 1.2 and HTTP/2 are refused in the handshake, and plain HTTP without one.
func TestTLS(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	for name, c := range map[string]struct {
		change func(*tls.Config)
		err    string
	}{
		"TLS 1.1":      {func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }, "protocol version not supported"},
		"TLS 1.2":      {func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, ""},
		"TLS 1.3":      {func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }, ""},
		"HTTP/2 alone": {func(c *tls.Config) { c.NextProtos = []string{"h2"} }, "no application protocol"},
		"both":         {func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} }, ""},
		"other trust":  {func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }, "unknown authority"},
		"another name": {func(c *tls.Config) { c.ServerName = "example.com" }, "not valid for any names"},
	} {
		config := e.config()
		c.change(config)
		conn, err := tls.Dial("tcp", e.address, config)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, name)
			continue
		}
		require.NoError(t, err, name)
		require.NoError(t, conn.Close())
	}
	conn, err := net.Dial("tcp", e.address)
	require.NoError(t, err)
	_, err = io.WriteString(conn, "GET /v1/data/ns/worker HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	answer, _ := io.ReadAll(conn)
	assert.Contains(t, string(answer), "HTTP/1.0 400 Bad Request")
	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool { return strings.Contains(e.logged(), "TLS handshake error") }, time.Minute, time.Millisecond, "at a high level")
}

// TestStart: an address that is in use, a directory that does not exist and metrics that are there are errors.
func TestStart(t *testing.T) {
	t.Parallel()
	e := start(t, nil)
	o := e.handler.options
	o.Address = e.address
	_, err := New(o)
	require.ErrorContains(t, err, "register a metric: ")
	o.Registry = prometheus.NewRegistry()
	second, err := New(o)
	require.NoError(t, err)
	require.ErrorContains(t, second.Start(t.Context()), "listen for machines: listen tcp "+e.address)
	assert.False(t, second.NeedLeaderElection())
	o.Registry, o.Releases = prometheus.NewRegistry(), "absent"
	_, err = New(o)
	require.ErrorContains(t, err, "open the directory of releases: ")
	o.Releases, o.Limits = "", Limits{}
	third, err := New(o)
	require.NoError(t, err)
	assert.Equal(t, DefaultLimits(), third.handler.options.Limits)
	assert.Equal(t, int64(256<<10), DefaultLimits().BodyBytes)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	require.ErrorContains(t, third.serve(t.Context(), closed), "serve machines: accept tcp")
}

// FuzzRequest: what is accepted has one spelling.
func FuzzRequest(f *testing.F) {
	for _, path := range []string{"/v1/data/ns/worker", "/v1/report/a.b/%2e", "/v1/release/v1/a.tar", "/v1//x", "/v1/data/../x\x00"} {
		f.Add(path, "Bearer "+tokenOf(1))
	}
	f.Add("/v1/data/a/"+strings.Repeat("b", 254), "bearer \r\n"+tokenOf(1)[2:])
	f.Fuzz(func(t *testing.T, path, authorization string) {
		target := parsePath(path)
		switch target.route {
		case routeNone:
		case routeRelease:
			assert.Equal(t, path, "/v1/release/"+target.file)
			assert.NotContains(t, "/"+target.file, "/.")
		default:
			assert.Equal(t, path, "/v1/"+target.route+"/"+target.of.String())
			assert.LessOrEqual(t, len(path), len("/v1/report//")+63+253)
		}
		if token, valid := parseBearer([]string{authorization}); valid {
			bits, err := base64.RawURLEncoding.DecodeString(token)
			require.NoError(t, err)
			assert.Equal(t, token, base64.RawURLEncoding.EncodeToString(bits))
			assert.Len(t, token, 43)
			assert.Equal(t, "Bearer "+token, "Bearer"+authorization[6:])
		}
	})
}

// BenchmarkData is the stream of 4 KiB for each of many machines.
func BenchmarkData(b *testing.B) {
	e := start(b, func(o *Options) { o.Log = logr.Discard() })
	client := httpclient.New(httpclient.Options{TLS: e.config()})
	if t, ok := client.Transport.(*http.Transport); ok {
		t.DisableKeepAlives = true
	}
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			r, _ := http.NewRequestWithContext(b.Context(), http.MethodGet, "https://"+e.address+"/v1/data/ns/small", nil)
			r.Header.Set("Authorization", "Bearer "+tokenOf(1))
			a, err := client.Do(r)
			if err != nil {
				b.Error(err)
				return
			}
			n, err := io.Copy(io.Discard, a.Body)
			_ = a.Body.Close()
			if err != nil || n != 4096 || a.StatusCode != http.StatusOK {
				b.Error(a.Status, n, err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}
