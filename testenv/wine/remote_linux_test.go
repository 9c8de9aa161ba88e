package wine

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/authority"
)

const (
	remoteToken  = "c4n4ry-of-the-server"
	remoteHeader = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nmetadata: {name: NAME}\nkind: "
)

// remote applies a stream on a server, which an encrypted document names, and sends the report there.
func remote(t *testing.T, p prefix) {
	t.Helper()
	const dir, libexec = "Program Files/machineadm/", "Program Files/machineadm/plugins/machineadm-"
	host := p.install(t, dir+"machineadm.exe", "build", "./host/cmd/machineadm")
	p.install(t, libexec+"remote-configuration-provider-http.exe", "build", "./plugins/remote-config/http")
	p.install(t, libexec+"plugin-encryption-provider-file.exe", "build", "./plugins/encrypted-config/file")
	p.install(t, libexec+"noop-plugin-test.exe", "build", "./testenv/noop")
	a, reports := authority.New(t), make(chan []byte, 3)
	url := serveRemote(t, a, reports)
	p.Forward(t, strings.TrimPrefix(url, "https://"))

	document := func(name, rest string) string { return strings.Replace(remoteHeader, "NAME", name, 1) + rest }
	config := "\n  providerConfig:\n    bearer: {value: " + remoteToken + "}\n    ca: |\n      " +
		strings.ReplaceAll(strings.TrimSpace(string(a.Certificate)), "\n", "\n      ") + "\n"
	p.write(t, "inner.yaml", document("site", "RemoteConfig\nspec:\n  provider: http\n  uri: "+url+"/node.yaml"+config))
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte("32 bytes that only this node has"), 0o600))
	require.NoError(t, p.CopyIn(t.Context(), key, path.Join(drive, "node.key"), 0o600))
	sealed := p.mustRun(t, host, "encrypt", "--path", `C:\inner.yaml`, "--name", "sealed", "--provider", "file", "--key", `C:\node.key`)
	assert.NotContains(t, sealed, remoteToken)
	p.MustExec(t, "rm", path.Join(drive, "inner.yaml"))
	p.write(t, "outer.yaml", document("home", "ReportTarget\nspec:\n  provider: http\n  uri: "+url+"/report"+config)+"---\n"+sealed)

	p.mustRun(t, host, "validate", "--path", `C:\outer.yaml`)
	assert.Regexp(t, "(?s)EncryptedConfig/sealed by file: resolved.*RemoteConfig/site by http: resolved.*Noop/last", p.mustRun(t, host, "resolve", "--path", `C:\outer.yaml`))
	p.mustRun(t, host, "apply", "--path", `C:\outer.yaml`)
	p.MustExec(t, "test", "-e", "/first", "-a", "-e", "/last") // of the current drive, which has the node's files
	var arrived report.Report
	require.NoError(t, json.Unmarshal(<-reports, &arrived))
	assert.Equal(t, report.RunSucceeded, arrived.Outcome)
	assert.Len(t, arrived.Documents, 5)
	p.MustExec(t, "test", "!", "-e", path.Join(drive, "ProgramData/machineadm/resolved"), "-a", "!", "-e", path.Join(drive, "ProgramData/machineadm/outbox.json"))
	files := p.MustExec(t, "grep", "-rls", remoteToken, drive).Stdout
	assert.Equal(t, drive+"/outer.yaml\n", files)
	p.mustRun(t, host, "plan", "--path", `C:\outer.yaml`)
}

// serveRemote serves a stream and takes reports, from those with the token.
func serveRemote(t *testing.T, a authority.Authority, reports chan<- []byte) string {
	t.Helper()
	noop := func(name string) string {
		return "apiVersion: example.com/v1\nkind: Noop\nmetadata: {name: " + name + "}\nspec: {provider: test, touch: [/" + name + "]}\n"
	}
	pair, err := tls.X509KeyPair(a.Issue(t, "localhost", func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }))
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer "+remoteToken:
			w.WriteHeader(http.StatusForbidden)
		case r.Method == http.MethodPost:
			body, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			reports <- body
		default:
			_, _ = io.WriteString(w, noop("first")+"---\n"+noop("last")) // the client checks
		}
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}
