package cloud

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// TestRedirects: at most five, to https alone, and not to this machine or its link.
func TestRedirects(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	var requests atomic.Int32
	other := a.serve(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	_, port, err := net.SplitHostPort(strings.TrimPrefix(other, "https://"))
	require.NoError(t, err)
	at := a.serve(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "Bearer "+canary, r.Header.Get("Authorization"))
		assert.Equal(t, canary, r.Header.Get("X-Key"))
		assert.Empty(t, r.Header.Get("Referer"))
		var left int
		if _, err := fmt.Sscanf(r.URL.Path, "/left/%d", &left); err == nil && left > 0 {
			http.Redirect(w, r, fmt.Sprintf("/left/%d?c4n4ry", left-1), 301+left%2)
		} else if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}
		_, _ = w.Write([]byte("text"))
	})
	data, err := get(t.Context(), t, a.client(), at+"/left/5")
	require.NoError(t, err)
	assert.Equal(t, "text", string(data))
	for path, text := range map[string]string{
		"/left/6":                                  "redirects once more",
		"/left/999":                                "redirects once more",
		"?to=http://a.example/c4n4ry":              "redirects to another scheme than https, or",
		"?to=ftp://a.example/c4n4ry":               "redirects to another scheme than https, or",
		"?to=file:///etc/passwd":                   "redirects to another scheme than https, or",
		"?to=https://c4n4ry:x@a.example":           "redirects to another scheme than https, or",
		"?to=https://":                             "redirects to another scheme than https, or",
		"?to=//c4n4ry%2520x/":                      "redirects to another scheme than https, or",
		"?to=https://169.254.169.254/latest":       "redirects to 169.254.169.254:443, which is an address of this machine",
		"?to=https://[fd00:ec2::254]/":             "redirects to [fd00:ec2::254]:443, which",
		"?to=https://[::ffff:169.254.169.254]:444": "redirects to [::ffff:169.254.169.254]:444, which",
		"?to=https://[64:ff9b:1::a9fe:a9fe]/":      "redirects to [64:ff9b:1::a9fe:a9fe]:443, which",
		"?to=https://[2002:a9fe:a9fe::1]/":         "redirects to [2002:a9fe:a9fe::1]:443, which",
		"?to=https://2852039166/latest":            "redirects to another scheme than https, or", // 169.254.169.254
		"?to=https://[2001:db8::1%25x.a.example]/": "redirects to another scheme than https, or",
		"?to=https://[fe80::1]/":                   "redirects to [fe80::1]:443, which",
		"?to=https://0.0.0.0:" + port:              "redirects to 0.0.0.0:" + port + ", which",
		"?to=" + other:                             "redirects to 127.0.0.1:" + port + ", which",
		"?to=https://localhost:" + port:            "redirects to localhost:" + port + ", which", // resolved at the dial
		"?to=//LOCALHOST:" + port:                  "redirects to LOCALHOST:" + port + ", which",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			_, err := get(t.Context(), t, a.client(), at+path)
			refused(t, err, pluginv1.CodePrecondition, text)
		})
	}
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		c := a.client()
		c.Redirects = 0
		_, err := get(t.Context(), t, c, at+"/left/1")
		assert.Contains(t, refusal(t, err, pluginv1.CodePrecondition, "answers with the status 302 (Found)").Hint, "redirects are not followed")
		post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/left/1", strings.NewReader("report"))
		require.NoError(t, err)
		post.Header.Set("Authorization", "Bearer "+canary)
		post.Header.Set("X-Key", canary)
		_, err = a.client().Do(post) //nolint:bodyclose // there is none
		refused(t, err, pluginv1.CodePrecondition, "answers with the status 302 (Found)")
	})
	assert.Zero(t, requests.Load())
}

// TestOtherServer: what a redirect leads to gets no header and no client certificate, even if it leads back.
func TestOtherServer(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	asks := func(s *httptest.Server) { s.TLS.ClientAuth = tls.RequestClientCert }
	var to, back string
	first := a.serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/back" {
			assert.Empty(t, r.Header.Get("Authorization"))
			assert.Empty(t, r.TLS.PeerCertificates)
			_, _ = w.Write([]byte("text"))
			return
		}
		assert.Equal(t, canary, r.Header.Get("X-Key"))
		assert.Len(t, r.TLS.PeerCertificates, 1)
		http.Redirect(w, r, to, http.StatusMovedPermanently)
	}, asks)
	second := a.serve(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, http.Header{"Accept-Encoding": {"identity"}, "User-Agent": {"machineadm"}, "Connection": {"close"}}, r.Header)
		assert.Empty(t, r.TLS.PeerCertificates)
		http.Redirect(w, r, back, http.StatusFound)
	}, asks)
	c := a.client()
	c.TLS.ClientCertificate = a.own(t)
	c.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.EqualFold(address, "a.example:443") {
			return (&net.Dialer{}).DialContext(ctx, network, strings.TrimPrefix(first, "https://"))
		}
		address = strings.TrimPrefix(second, "https://")
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	for _, other := range []string{"https://b.example/", "https://a.example:444/", "https://b.example./", "//b.example"} {
		to, back = other, "https://A.example:443/back"
		data, err := get(t.Context(), t, c, "https://a.example/")
		require.NoError(t, err, other)
		assert.Equal(t, "text", string(data))
	}
}

// own is a client certificate of the authority.
func (a authority) own(t *testing.T) *ClientCertificate {
	t.Helper()
	pair := a.issue(t)
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	return &ClientCertificate{
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})),
		Key:         v1alpha1.NewSecret(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	for _, same := range [][2]string{{"https://a.example/x", "https://A.Example:443"}, {"http://a.example", "http://a.example:80/y?z"}} {
		assert.Equal(t, origin(parsed(t, same[0])), origin(parsed(t, same[1])))
	}
	for _, other := range [][2]string{
		{"https://a.example", "https://b.a.example"}, {"https://a.example", "https://a.example:444"}, {"http://a.example:443", "https://a.example"},
	} {
		assert.NotEqual(t, origin(parsed(t, other[0])), origin(parsed(t, other[1])))
	}
}

func TestLocalAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "0.0.0.0": true, "0.1.2.3": true, "::": true, "169.254.1.1": true, "fe80::1": true,
		"fe80::1%eth0": true, "::ffff:127.0.0.1": true, "::ffff:169.254.169.254": true, "224.0.0.1": true, "ff02::1": true,
		"64:ff9b::a9fe:a9fe": true, "64:ff9b::7f00:1": true, "64:ff9b::808:808": false, "::169.254.169.254": true, "::8.8.8.8": false,
		"64:ff9b:1::a9fe:a9fe": true, "64:ff9b:1:a9fe:a9:fe00::": true, "64:ff9b:2::a9fe:a9fe": false, "2002:a9fe:a9fe::1": true, "2003::1": false,
		"2001::1": true, "2001:0:808:808::1": true, "2001:1::1": false, "fec0::1": true, "feff::1": true,
		"fd00:ec2::254": true, "100.100.100.200": true,
		"10.0.0.1": false, "192.168.0.1": false, "192.0.2.1": false, "fd00::1": false, "2001:db8::1": false, "::ffff:10.0.0.1": false,
	} {
		assert.Equal(t, want, isLocal(netip.MustParseAddr(address)), address)
	}
}
