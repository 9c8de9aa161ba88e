package download

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/install"
	machine "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/objectstores"
	"github.com/machineadm/machineadm/testenv/tools"
)

// TestDefiniteAnswers: a run does not wait for its time limit where waiting cannot help.
func TestDefiniteAnswers(t *testing.T) {
	t.Parallel()
	b, ca := newBed(t).write(Release{}), authority.New(t)
	served := func(name string, clients tls.ClientAuthType, edit func(*x509.Certificate)) string {
		certificate, key := ca.Issue(t, name, edit)
		pair, err := tls.X509KeyPair(certificate, key)
		require.NoError(t, err)
		server := httptest.NewUnstartedServer(http.HandlerFunc(b.files))
		server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: clients, MinVersion: tls.VersionTLS13}
		server.StartTLS()
		t.Cleanup(server.Close)
		return server.URL
	}
	here := func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }
	unknown := httptest.NewTLSServer(http.HandlerFunc(b.files))
	t.Cleanup(unknown.Close)
	proxied := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) })
	locations := map[string]string{
		serve(t, http.NotFound):                          "the server answers 404 Not Found",
		objectstores.StartS3(t, nil).URL("v1.0.0"):       "the server answers 403 Forbidden",
		served("mutual", tls.RequireAnyClientCert, here): "remote error: tls: certificate required",
		unknown.URL: "certificate signed by unknown authority",
		served("other.example.com", tls.NoClientCert, func(*x509.Certificate) {}):                                         "cannot validate certificate for 127.0.0.1",
		served("late", tls.NoClientCert, func(c *x509.Certificate) { here(c); c.NotAfter = time.Now().Add(-time.Hour) }):  "certificate has expired or is not yet valid: current time ",
		served("early", tls.NoClientCert, func(c *x509.Certificate) { here(c); c.NotBefore = time.Now().Add(time.Hour) }): "certificate has expired or is not yet valid: current time ",
		strings.Replace(serve(t, b.files), "http:", "https:", 1):                                                          "server gave HTTP response to HTTPS client",
		"https://proxied.invalid": "the proxy answers 407 Proxy Authentication Required",
	}
	dir := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), dir, map[string]string{"machineadm": "host/cmd/machineadm"}))
	require.NoError(t, os.WriteFile(dir+"/ca.pem", ca.Certificate, 0o600))
	arguments := []string{"install", "--to", b.to, "--key", b.key.Public().String(), "--timeout", "1h"}
	for location := range locations {
		arguments = append(arguments, "--manifest", location)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, dir+"/machineadm", arguments...)
	c.Env = append(os.Environ(), "SSL_CERT_FILE="+dir+"/ca.pem", "HTTPS_PROXY="+proxied)
	var problem bytes.Buffer
	c.Stderr = &problem
	_ = c.Run() // the exit code is compared
	require.Equal(t, report.ExitPrecondition, c.ProcessState.ExitCode(), problem.String())
	summary := problem.String()[strings.Index(problem.String(), "error: "):]
	for location, want := range locations {
		_, after, found := strings.Cut(summary, location+"/manifest.json: ")
		require.True(t, found, location)
		text, _, _ := strings.Cut(after, "; ")
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, problem.String(), "trying again")
	assert.NoDirExists(t, b.to)

	c = exec.CommandContext(ctx, dir+"/machineadm", append(arguments[:7:7], "--manifest", unknown.URL)...)
	out, _ := c.CombinedOutput() // the exit code is compared
	assert.Equal(t, report.ExitPrecondition, c.ProcessState.ExitCode())
	assert.Contains(t, string(out), "hint: correct the certificate of the server, or the trusted certificates or the clock of this machine")
}

// TestNames has a DNS server that learns the name of a server late, as a network at boot, and never that of another one. It
// runs itself as another process, with a network and an /etc/resolv.conf of its own.
func TestNames(t *testing.T) {
	const variable = "DOWNLOAD_NAMES"
	if os.Getenv(variable) == "" {
		t.Parallel()
		machine.Root(t)
		machine.Tool(t, "ip")
		resolv := filepath.Join(t.TempDir(), "resolv.conf")
		require.NoError(t, os.WriteFile(resolv, []byte("nameserver 127.0.0.1\n"), 0o600))
		self, err := os.Executable()
		require.NoError(t, err)
		c := exec.CommandContext(t.Context(), machine.Tool(t, "unshare"), "--net", "--mount", "sh", "-c",
			`ip link set lo up && mount --bind "$1" /etc/resolv.conf && exec "$0" -test.run='^TestNames$' -test.v`, self, resolv)
		c.Env = append(os.Environ(), variable+"=1")
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Contains(t, string(out), "--- PASS: TestNames")
		return
	}
	known := serveNames(t)
	b := newBed(t).write(Release{})
	late := strings.Replace(serve(t, b.files), "127.0.0.1", "late.example", 1)
	missing := serve(t, http.NotFound)
	assert.True(t, b.installed(at(missing, late), func(o *install.Options) {
		warn := o.Warn
		o.Warn = func(message string) { warn(message); known.Store(strings.Contains(message, "no such host")) }
	}).Changed)
	require.Len(t, b.warnings, 2, b.warnings)
	assert.Equal(t, missing+"/manifest.json: the server answers 404 Not Found", b.warnings[0])
	assert.Regexp(t, "^"+late+`/manifest.json: dial tcp: lookup late.example on 127.0.0.1:53: no such host; trying again for [0-9ms]+$`, b.warnings[1])

	const problem = "the time limit is reached: https://misspelled.example/manifest.json: dial tcp: lookup misspelled.example on "
	failed, warnings := limited(t, problem, install.Options{Locations: []string{"https://misspelled.example"}, To: b.to})
	assert.Contains(t, failed.Remedy, "check the name of the server")
	assert.Len(t, warnings, 1, "each failure is reported once")
}

// serveNames is a DNS server for the address of late.example, which is 127.0.0.1 as soon as the result is true; no other name
// exists. The messages are as in RFC 1035.
func serveNames(t *testing.T) *atomic.Bool {
	t.Helper()
	known := new(atomic.Bool)
	server, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:53")
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() }) // the test is over
	name := []byte("\x04late\x07example\x00")
	go func() {
		for message := make([]byte, 512); ; {
			n, from, err := server.ReadFrom(message)
			if err != nil {
				return // closed
			}
			question := message[12:n]
			question = question[:bytes.IndexByte(question, 0)+5] // the root label ends the name; type and class
			answer := append([]byte{message[0], message[1], 0x85, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
			switch {
			case !known.Load() || !bytes.HasPrefix(question, name):
				answer[3] |= 3 // no such name
			case question[len(name)+1] == 1: // an address of IPv4
				answer[7] = 1
				answer = append(answer, "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x04\x7f\x00\x00\x01"...)
			}
			_, _ = server.WriteTo(answer, from) // the client asks again
		}
	}()
	return known
}
