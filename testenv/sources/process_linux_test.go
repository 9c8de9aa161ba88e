package sources

import (
	"bufio"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/testenv/authority"
)

func onLoopback(c *x509.Certificate) {
	c.IPAddresses, c.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1)}, append(c.DNSNames, "other."+c.DNSNames[0])
}

const canary = "c4n4ry-of-the-document"

// hijack answers with bytes, and closes the connection.
func hijack(w http.ResponseWriter, text string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(conn, text) // the client may have left
	_ = conn.Close()
}

// TestSecretsGoNowhere: a token and a password are in the request and nowhere else, although the server repeats them in each part
// of its answers: not in errors, stderr, arguments or environment, while the request runs and after it.
func TestSecretsGoNowhere(t *testing.T) {
	t.Parallel()
	plugin, a := httpPlugin(t), authority.New(t)
	running := make(chan int, 1)
	at := serve(t, a, func(w http.ResponseWriter, r *http.Request) {
		assert.Contains(t, r.Header.Get("Authorization")+r.Header.Get("X-Key"), canary)
		pid := <-running
		for _, file := range []string{"cmdline", "environ"} {
			data, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), file))
			if os.IsPermission(err) { // not even its own user may read a process without core dumps
				continue
			}
			assert.NoError(t, err)
			assert.NotEmpty(t, data)
			assert.NotContains(t, string(data), "c4n4ry")
		}
		w.Header().Set("X", canary)
		switch r.URL.Path {
		case "/c4n4ry/redirect":
			w.Header().Set("Location", "http://"+canary+"/"+canary)
			w.WriteHeader(http.StatusFound)
		case "/c4n4ry/malformed":
			hijack(w, "HTTP/1.1 "+canary+"\r\n\r\n")
		case "/c4n4ry/header":
			hijack(w, "HTTP/1.1 200 OK\r\n"+canary+"\r\n\r\n")
		case "/c4n4ry/chunk":
			hijack(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+canary+"\r\n")
		case "/c4n4ry/twice":
			hijack(w, "HTTP/1.1 500 "+canary+"\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 "+canary+"\r\n\r\n"+canary)
		case "/c4n4ry/encoded":
			w.Header().Set("Content-Encoding", canary)
			_, _ = io.WriteString(w, canary)
		default:
			http.Error(w, canary, http.StatusForbidden)
		}
	})
	for _, path := range []string{"redirect", "malformed", "header", "chunk", "twice", "encoded", "refused"} {
		r := do(t, Call{
			Plugin: plugin, Started: func(pid int) { running <- pid },
			Spec: spec(a, at+"/c4n4ry/"+path+"?"+canary, map[string]any{"bearer": secret(canary), "headers": map[string]any{"X-Key": secret(canary)}}),
		})
		require.NotNil(t, r.Error, path)
		for _, form := range []string{"c4n4ry", base64.StdEncoding.EncodeToString([]byte(canary))[:16]} {
			assert.NotContains(t, fmt.Sprintf("%+v", *r.Error), form, path)
			assert.NotContains(t, r.Stderr, form, path)
		}
		t.Logf("%s: %v", path, r.Error)
	}
	go func() { running <- 0 }() // no request comes
	r := do(t, Call{Plugin: plugin, Spec: spec(a, at+"/c4n4ry", map[string]any{"basic": map[string]any{"username": "c4n4ry:", "password": secret(canary)}})})
	assert.Equal(t, pluginv1.CodeInvalidConfig, r.Error.Code)
	assert.NotContains(t, fmt.Sprintf("%+v %s", *r.Error, r.Stderr), "c4n4ry")
}

// TestComingUp: a server that closes connections at first is asked again, by the process itself.
func TestComingUp(t *testing.T) {
	t.Parallel()
	plugin, a := httpPlugin(t), authority.New(t)
	var requests atomic.Int32
	at := serve(t, a, func(w http.ResponseWriter, _ *http.Request) {
		switch requests.Add(1) {
		case 1:
			hijack(w, "")
		case 2:
			w.WriteHeader(http.StatusBadGateway)
		case 3:
			hijack(w, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nte")
		default:
			w.Header().Set("ETag", `"4"`)
			_, _ = io.WriteString(w, "text")
		}
	})
	r := do(t, Call{Plugin: plugin, Spec: spec(a, at, nil), RetryFor: 30 * time.Second})
	require.Nil(t, r.Error)
	assert.Equal(t, 4, r.Size, "what came before a lost connection does not count")
	assert.Equal(t, `"4"`, r.Revision)
	r = do(t, Call{Plugin: plugin, Spec: spec(a, "https://127.0.0.1:1", nil)})
	assert.Equal(t, pluginv1.CodeRetry, r.Error.Code)
}

// proxy is an HTTP proxy that connects every name to one server, and records what it is asked.
type proxy struct {
	asked chan string
	to    string // HOST:PORT; a status if it refuses
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.asked <- r.Method + " " + r.Host + " " + r.Header.Get("Proxy-Authorization")
	var status int
	if _, err := fmt.Sscanf(p.to, "status %d", &status); err == nil {
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(status)
		return
	}
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = server.Close() }()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = client.Close() }()
	_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(server, bufio.NewReader(buffered)) }()
	_, _ = io.Copy(client, server)
}

// TestProxy: the proxy of the environment is used without its user, and for what is not this machine. A redirect through it gets no
// credentials, and none leads to a literal address of the link.
func TestProxy(t *testing.T) {
	t.Parallel()
	plugin, a := httpPlugin(t), authority.New(t)
	at := serve(t, a, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, r.Host != "other.source.example", r.Header.Get("Authorization") != "", r.Host)
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "text")
	})
	for name, test := range map[string]struct {
		uri, to, error string
		code           pluginv1.Code
		asked          []string
	}{
		"used":      {uri: "https://source.example/", asked: []string{"source.example:443"}},
		"loopback":  {uri: at},
		"forbidden": {uri: "https://source.example/", to: "status 407", code: pluginv1.CodePrecondition, error: "the proxy answers with the status 407", asked: []string{"source.example:443"}},
		"busy":      {uri: "https://source.example/", to: "status 503", code: pluginv1.CodeRetry, error: "through the proxy 127.0.0.1:", asked: []string{"source.example:443"}},
		"same server": {
			uri: "https://source.example/?to=/again", asked: []string{"source.example:443", "source.example:443"},
		},
		"another server": {
			uri: "https://source.example/?to=https://other.source.example/again", asked: []string{"source.example:443", "other.source.example:443"},
		},
		"link": {
			uri: "https://source.example/?to=https://169.254.169.254/", code: pluginv1.CodePrecondition, error: "redirects to 169.254.169.254:443",
			asked: []string{"source.example:443"},
		},
		"localhost": {
			uri: "https://source.example/?to=https://localhost:1/", code: pluginv1.CodePrecondition, error: "redirects to localhost:1", asked: []string{"source.example:443"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &proxy{asked: make(chan string, 10), to: test.to}
			if p.to == "" {
				p.to = strings.TrimPrefix(at, "https://")
			}
			s := httptest.NewServer(p)
			defer s.Close()
			r := do(t, Call{
				Plugin: plugin, Spec: spec(a, test.uri, map[string]any{"bearer": secret(canary)}),
				Environment: map[string]string{"HTTPS_PROXY": strings.Replace(s.URL, "http://", "http://me:"+canary+"@", 1)},
			})
			for _, host := range test.asked {
				assert.Equal(t, "CONNECT "+host+" ", <-p.asked)
			}
			assert.Empty(t, p.asked)
			if test.error == "" {
				require.Nil(t, r.Error)
				assert.Equal(t, 4, r.Size)
				return
			}
			require.NotNil(t, r.Error)
			assert.Equal(t, test.code, r.Error.Code)
			assert.Contains(t, r.Error.Message, test.error)
		})
	}
}

// TestFile: the other provider, as a process.
func TestFile(t *testing.T) {
	t.Parallel()
	plugin, file := filepath.Join(built(t, map[string]string{"file": "plugins/remote-config/file"}), "file"), filepath.Join(t.TempDir(), "stream")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	r := do(t, Call{Plugin: plugin, Spec: map[string]any{"provider": "file", "uri": file}})
	require.Nil(t, r.Error)
	assert.Equal(t, 4, r.Size)
	r = do(t, Call{Plugin: plugin, Spec: map[string]any{"provider": "file", "uri": file}, Report: []byte("{}")})
	assert.Equal(t, pluginv1.CodeUnsupported, r.Error.Code)
	assert.Empty(t, r.Stderr)
}

// TestBinary: a provider stays below the size of a plugin. Products are stripped, as releases are.
func TestBinary(t *testing.T) {
	t.Parallel()
	dir := built(t, map[string]string{"http": "plugins/remote-config/http", "file": "plugins/remote-config/file", "bare": "testenv/sources/bare"})
	for _, name := range []string{"http", "file", "bare"} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		t.Logf("%s: %.1f MiB", name, float64(info.Size())/(1<<20))
		assert.LessOrEqual(t, info.Size(), int64(16<<20), name)
	}
}
