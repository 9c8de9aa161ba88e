package infrastructure

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/testenv/authority"
)

// remote is a stream that is not in the data of a machine.
const remote = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: remote}\n" +
	"spec: {parameters: {net.ipv4.ip_local_port_range: 32768 61000}}\n"

// reports is a server to which machines send the reports of their runs, and from which they get the stream remote.
type reports struct {
	url, ca string

	mu   sync.Mutex
	last map[string]report.Report // by the name of the machine
	// first has the first request for each path below down.
	first map[string]time.Time
}

// down is the begin of paths that are not served before a minute after the first request for each.
const down = "/down/"

// isDown reports whether a path is not served yet.
func (r *reports) isDown(path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, asked := r.first[path]; !asked {
		r.first[path] = time.Now()
	}
	return strings.HasPrefix(path, down) && time.Since(r.first[path]) < time.Minute
}

// collect serves at an address until the test ends.
func collect(t testing.TB, at netip.Addr) *reports {
	t.Helper()
	ca := authority.New(t)
	certificate, key := ca.Issue(t, "reports", func(c *x509.Certificate) { c.IPAddresses = []net.IP{at.AsSlice()} })
	pair, err := tls.X509KeyPair(certificate, key)
	require.NoError(t, err)
	r := &reports{ca: string(ca.Certificate), last: map[string]report.Report{}, first: map[string]time.Time{}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if strings.HasPrefix(request.URL.Path, "/v2/") { // of a registry without images
			http.NotFound(w, request)
			return
		}
		if r.isDown(request.URL.Path) {
			http.Error(w, "", http.StatusServiceUnavailable)
			return
		}
		if request.Method == http.MethodGet {
			_, _ = io.WriteString(w, remote)
			return
		}
		var got report.Report
		text, err := io.ReadAll(request.Body)
		if assert.NoError(t, err) && assert.NoError(t, json.Unmarshal(text, &got)) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.last[got.Host.Hostname] = got
		}
	}))
	require.NoError(t, server.Listener.Close())
	server.Listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", netip.AddrPortFrom(at, 0).String())
	require.NoError(t, err)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// of returns the last report of a machine; ok is false before it has sent one.
func (r *reports) of(name string) (last report.Report, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok = r.last[name]
	return last, ok
}

// target is the document of a MachineBootstrapConfig with which a machine sends its report.
func (r *reports) target() map[string]any {
	return map[string]any{
		"apiVersion": contract.APIVersion, "kind": contract.KindReportTarget, "name": "home",
		"spec": map[string]any{"provider": "http", "uri": r.url + "/", "providerConfig": map[string]any{"ca": r.ca}},
	}
}
