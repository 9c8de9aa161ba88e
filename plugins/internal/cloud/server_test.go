package cloud

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// authority is a certificate authority that no machine trusts yet.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         string
}

func newAuthority(t testing.TB) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotBefore: time.Unix(0, 0), NotAfter: time.Now().AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return authority{parsed, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

// issue makes a certificate for 127.0.0.1, localhost and a.example, changed by the edits.
func (a authority) issue(t testing.TB, edits ...func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "leaf"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		DNSNames: []string{"localhost", "a.example", "b.example"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, edit := range edits {
		edit(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// serve serves a handler by TLS with a certificate of the authority, and returns its URL.
func (a authority) serve(t testing.TB, handler http.HandlerFunc, edits ...func(*httptest.Server)) string {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{a.issue(t)}} //nolint:gosec // tests choose the versions
	for _, edit := range edits {
		edit(s)
	}
	s.StartTLS()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

func (a authority) client() Client { return Client{TLS: TLS{CA: a.pem}, Redirects: MaxRedirects} }

// get requests a URL with credentials and returns the body.
func get(ctx context.Context, t testing.TB, c Client, url string) ([]byte, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+canary)
	r.Header.Set("X-Key", canary)
	answer, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(answer.Body)
	require.NoError(t, answer.Body.Close())
	return data, err
}

const canary = "c4n4ry-of-the-request"

// refused requires an error of the contract.
func refused(t testing.TB, err error, code pluginv1.Code, text string) {
	t.Helper()
	_ = refusal(t, err, code, text)
}

// refusal requires an error of the contract, and returns it. No error has the credentials or the path of the URL.
func refusal(t testing.TB, err error, code pluginv1.Code, text string) *pluginv1.Error {
	t.Helper()
	var known *pluginv1.Error
	require.ErrorAs(t, err, &known)
	assert.Equal(t, code, known.Code, "%v", known)
	assert.Contains(t, known.Message, text)
	for _, part := range append([]string{known.Message, known.Hint, known.Detail}, known.Facts[pluginv1.FactStatus]) {
		assert.NotContains(t, part, "c4n4ry")
	}
	return known
}
