package download

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/install"
	"github.com/machineadm/machineadm/installer/manifest"
	machine "github.com/machineadm/machineadm/internal/require"
)

func at(locations ...string) func(*install.Options) {
	return func(o *install.Options) { o.Locations = locations }
}

// serve serves a handler until the test ends.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// files serves the release of a bed.
func (b *bed) files(w http.ResponseWriter, r *http.Request) {
	http.ServeFile(w, r, filepath.Join(b.from, filepath.Base(r.URL.Path)))
}

// TestBusybox installs from the web server of small systems. testenv/fetch has nginx, whose Debian package starts a service, in a node.
func TestBusybox(t *testing.T) {
	t.Parallel()
	program := machine.Tool(t, "busybox")
	b := newBed(t).write(Release{})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	c := exec.CommandContext(ctx, program, "httpd", "-f", "-p", address, "-h", b.from)
	require.NoError(t, c.Start())
	t.Cleanup(func() { cancel(); _ = c.Wait() })
	url := "http://" + address + "/manifest.json" // the retries wait until it listens
	assert.True(t, b.installed(at(url)).Changed)
	assert.False(t, b.installed(at(url)).Changed)
	assert.Contains(t, b.read("bin/machineadm"), "v1.0.0")
}

func TestRetries(t *testing.T) {
	t.Parallel()
	b := newBed(t).write(Release{})
	var requests atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch requests.Add(1) {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2, 5:
			w.Header().Set("Content-Length", "100000") // and ends too early
			_, _ = w.Write([]byte("{"))
		case 3:
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			b.files(w, r)
		}
	})
	assert.True(t, b.installed(at(url)).Changed)
	assert.Contains(t, strings.Join(b.warnings, "\n"), url+"/manifest.json: the server answers 503 Service Unavailable")
	assert.Contains(t, strings.Join(b.warnings, "\n"), "unexpected EOF")
}

func TestMirrors(t *testing.T) {
	t.Parallel()
	b := newBed(t).write(Release{Version: "v1.1.0", Sequence: 2})
	old := newBed(t)
	old.key = b.key
	old.write(Release{})
	hostile := newBed(t).write(Release{Version: "v1.1.0", Sequence: 2})
	damaged := newBed(t)
	damaged.key = b.key
	damaged.write(Release{Version: "v1.1.0", Sequence: 2})
	damaged.change(archiveName, func(d []byte) []byte { return d[:len(d)/2] })
	missing := serve(t, http.NotFound)
	result := b.installed(at(missing, filepath.Join(b.from, "none"), hostile.from, damaged.from, b.from, old.from))
	assert.Equal(t, "v1.1.0", result.Version)
	warnings := strings.Join(b.warnings, "\n")
	for _, text := range []string{
		missing + "/manifest.json: the server answers 404 Not Found", "none/manifest.json: no such file or directory", "is not trusted",
		"the copy is incomplete",
	} {
		assert.Contains(t, warnings, text)
	}
	assert.Len(t, b.warnings, 4)
	b.refused(report.ExitUntrusted, "404 Not Found; ", at(missing, old.from))
}

func TestTimeLimit(t *testing.T) {
	t.Parallel()
	b := newBed(t).write(Release{})
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		problem string
	}{
		"unavailable": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "the server answers 502 Bad Gateway"},
		"silent":      {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed, _ := limited(t, test.problem, install.Options{
				Locations: []string{serve(t, test.handler)}, Keys: []manifest.Key{b.key.Public()}, To: b.to + name,
			})
			assert.Contains(t, failed.Problem, "the time limit is reached: http://127.0.0.1:")
			assert.NoDirExists(t, b.to+name)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := install.Install(ctx, install.Options{Locations: []string{"http://127.0.0.1:1"}, To: b.to, Warn: func(string) {}})
	failed := new(install.Error)
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, report.ExitInterrupted, failed.Code)
}

// TestCredentials: users, passwords and queries reach the server, and no message.
func TestCredentials(t *testing.T) {
	t.Parallel()
	b := newBed(t).write(Release{})
	fail := atomic.Bool{}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "me" || password != "s3cret" || r.URL.Query().Get("sig") != "t0ken" || fail.Load() {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		b.files(w, r)
	})
	secret := strings.Replace(url, "://", "://me:s3cret@", 1) + "/manifest.json?sig=t0ken"
	b.installed(at(secret))
	fail.Store(true)
	b.refused(report.ExitPrecondition, url+"/manifest.json: the server answers 403 Forbidden", at(secret))
	refused := "http://me:s3cret@127.0.0.1:1/?sig=t0ken"
	for _, location := range []string{
		secret, refused, "https://me:s3cret@" + strings.TrimPrefix(url, "http://") + "/?sig=t0ken",
		"ftp://me:s3cret@x/?sig=t0ken", "http://me:s3cret@[::1/?sig=t0ken", "http://me:s3cret@nowhere.invalid/?sig=t0ken",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := install.Install(ctx, install.Options{Locations: []string{location}, To: b.to, Warn: func(message string) {
			b.warnings = append(b.warnings, message)
			cancel() // what is tried again ends after the first try
		}})
		cancel()
		require.Error(t, err, location)
		b.warnings = append(b.warnings, err.Error())
	}
	failed, warnings := limited(t, "127.0.0.1:1", install.Options{Locations: []string{refused}, To: b.to})
	b.warnings = append(append(b.warnings, warnings...), failed.Error())
	for _, message := range b.warnings {
		assert.NotContains(t, message, "s3cret")
		assert.NotContains(t, message, "t0ken")
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	b := newBed(t).write(Release{})
	plain := serve(t, b.files)
	b.installed(at(serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plain+r.URL.Path, http.StatusFound) })))
	loop := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) })
	b.refused(report.ExitPrecondition, "the server redirects more than 10 times", at(loop))
}

// TestNoRedirectOutOfTLS runs itself as another process, because the certificates of a process are set by its environment.
func TestNoRedirectOutOfTLS(t *testing.T) {
	const variable = "DOWNLOAD_TLS"
	if url := os.Getenv(variable); url != "" {
		b := newBed(t)
		b.refused(report.ExitPrecondition, "the server redirects from https to http, which is not followed", at(url))
		return
	}
	b := newBed(t).write(Release{})
	plain := serve(t, b.files)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain+r.URL.Path, http.StatusFound)
	}))
	defer server.Close()
	pem := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(pem, encodePEM(server.Certificate().Raw), 0o600))
	c := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestNoRedirectOutOfTLS$", "-test.v")
	c.Env = append(os.Environ(), variable+"="+server.URL, "SSL_CERT_FILE="+pem)
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "--- PASS: TestNoRedirectOutOfTLS")
}
