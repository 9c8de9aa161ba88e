package serve

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
)

// clock is a time that a test sets.
type clock struct{ atomic.Pointer[time.Time] }

func newClock() *clock {
	c := &clock{}
	now := time.Now()
	c.Store(&now)
	return c
}

func (c *clock) now() time.Time { return *c.Load() }

func (c *clock) add(d time.Duration) {
	later := c.now().Add(d)
	c.Store(&later)
}

// served returns the certificate of a connection that is verified at the time of the clock.
func (e *endpoint) served(t *testing.T, trust []byte, c *clock) *x509.Certificate {
	t.Helper()
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(trust))
	conn, err := tls.Dial("tcp", e.address, &tls.Config{RootCAs: pool, Time: c.now})
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	return conn.ConnectionState().PeerCertificates[0]
}

// TestAuthorityRenews: a certificate is renewed when a third of it is left, and a machine that was made before accepts it, from each
// replica.
func TestAuthorityRenews(t *testing.T) {
	t.Parallel()
	c := newClock()
	certificate, key, err := NewAuthority(c.now())
	require.NoError(t, err)
	var replicas [2]*endpoint
	for i := range replicas {
		replicas[i] = start(t, func(o *Options) {
			o.Certificates, err = FromAuthority(certificate, key, "127.0.0.1", o.Log, c.now)
			require.NoError(t, err)
		})
	}
	e := replicas[0]
	trust := e.handler.options.Certificates.Trust()
	first := e.served(t, trust, c)
	assert.WithinDuration(t, c.now().Add(-day), first.NotBefore, time.Second)
	assert.WithinDuration(t, c.now().Add(30*day), first.NotAfter, time.Second)
	assert.Equal(t, []string{"127.0.0.1"}, []string{first.IPAddresses[0].String()})
	c.add(20*day - time.Second)
	assert.Equal(t, first.SerialNumber, e.served(t, trust, c).SerialNumber)
	c.add(time.Second)
	second := e.served(t, trust, c)
	assert.NotEqual(t, first.SerialNumber, second.SerialNumber)
	assert.NotEqual(t, first.PublicKey, second.PublicKey)
	assert.Equal(t, second.SerialNumber, e.served(t, trust, c).SerialNumber)
	assert.NotEqual(t, second.SerialNumber, replicas[1].served(t, trust, c).SerialNumber)
	c.add(9 * 365 * day)
	require.NoError(t, testutil.GatherAndCompare(e.registry, strings.NewReader(fmt.Sprintf(`
# HELP machineadm_server_certificate_expiry_timestamp_seconds Unix time at which the certificate for machines ends.
# TYPE machineadm_server_certificate_expiry_timestamp_seconds gauge
machineadm_server_certificate_expiry_timestamp_seconds %d
`, c.now().Add(30*day).Unix())), "machineadm_server_certificate_expiry_timestamp_seconds"), "renewed by the metric")
	e.served(t, trust, c)
	assert.Equal(t, trust, e.handler.options.Certificates.Trust())
}

// TestAuthorityEnds: no certificate outlives its authority, which is reported once when it has ended.
func TestAuthorityEnds(t *testing.T) {
	t.Parallel()
	c := newClock()
	certificate, key, err := NewAuthority(c.now())
	require.NoError(t, err)
	e := start(t, func(o *Options) {
		c.add(authorityLife - 10*day)
		o.Certificates, err = FromAuthority(certificate, key, "127.0.0.1", o.Log, c.now)
		require.NoError(t, err)
	})
	first := e.served(t, certificate, c)
	assert.WithinDuration(t, c.now().Add(10*day), first.NotAfter, time.Second)
	c.add(9*day + 23*time.Hour)
	assert.Equal(t, first.SerialNumber, e.served(t, certificate, c).SerialNumber)
	for range 3 {
		c.add(time.Hour)
		_, err := tls.Dial("tcp", e.address, &tls.Config{RootCAs: e.trust, Time: c.now})
		require.ErrorContains(t, err, "expired")
	}
	assert.Equal(t, 1, strings.Count(e.logged(), "the certificate for machines is not renewed"))
	_, err = FromAuthority(certificate, key, "127.0.0.1", logr.Discard(), c.now)
	require.ErrorContains(t, err, "replace tls.crt and tls.key")
}

// TestAuthority: what machines could not use is refused when the manager starts.
func TestAuthority(t *testing.T) {
	t.Parallel()
	certificate, key, err := NewAuthority(time.Now())
	require.NoError(t, err)
	ca, err := contract.CertificateOf(string(certificate))
	require.NoError(t, err)
	assert.Equal(t, "CN=machineadm", ca.Subject.String())
	assert.Equal(t, x509.ECDSA, ca.PublicKeyAlgorithm)
	assert.True(t, ca.IsCA && ca.MaxPathLenZero && ca.MaxPathLen == 0)
	for host, problem := range map[string]string{
		"127.0.0.1": "", "2001:db8::1": "", "machines.example.com": "", "m": "",
		"": "neither", "fe80::1%eth0": "neither", "a_b": "neither", "Example.com": "lower case", "[::1]": "neither", "a:1": "neither", "*.example.com": "neither",
	} {
		c, err := FromAuthority(certificate, key, host, logr.Discard(), time.Now)
		if problem != "" {
			require.ErrorContains(t, err, problem, host)
			continue
		}
		require.NoError(t, err, host)
		require.NoError(t, c.newest(t.Context()).pair.Leaf.VerifyHostname(host))
		assert.Equal(t, certificate, c.Trust())
	}
	_, other, err := NewAuthority(time.Now())
	require.NoError(t, err)
	leaf, leafKey := leafOf(t, certificate, key, nil)
	limited, limitedKey := sign(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature}, nil, nil)
	for problem, c := range map[string][2][]byte{
		"tls.crt is required":                          {nil, key},
		"tls.key is required":                          {certificate, nil},
		"tls.key is not the key of the certificate":    {certificate, other},
		"tls.crt is not a certificate authority":       {leaf, leafKey},
		"tls.crt is of an authority that may not sign": {limited, limitedKey},
	} {
		_, err := FromAuthority(c[0], c[1], "m", logr.Discard(), time.Now)
		require.ErrorContains(t, err, problem)
	}
}

// sign returns a certificate and its key, signed by an authority or by itself.
func sign(t *testing.T, template *x509.Certificate, authority, authorityKey []byte) (certificate, key []byte) {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template.NotBefore, template.NotAfter = template.NotBefore.Add(0), template.NotAfter.Add(0)
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(100*day)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	parent, by := template, any(signer)
	if authority != nil {
		pair, err := tls.X509KeyPair(authority, authorityKey)
		require.NoError(t, err)
		parent, by = pair.Leaf, pair.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, signer.Public(), by)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(signer)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// leafOf returns a certificate for 127.0.0.1, as cert-manager makes one.
func leafOf(t *testing.T, authority, authorityKey []byte, change func(*x509.Certificate)) (certificate, key []byte) {
	t.Helper()
	template := &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	template.Subject.CommonName = "leaf"
	if change != nil {
		change(template)
	}
	return sign(t, template, authority, authorityKey)
}

// TestSecretRenews: another pair is used within a minute, a broken one is not, and is reported once; the Secret is not read more often.
func TestSecretRenews(t *testing.T) {
	t.Parallel()
	c := newClock()
	authority, authorityKey, err := NewAuthority(c.now())
	require.NoError(t, err)
	pair := func() map[string][]byte {
		leaf, key := leafOf(t, authority, authorityKey, nil)
		return map[string][]byte{"tls.crt": leaf, "tls.key": key, "ca.crt": authority}
	}
	var mutex sync.Mutex
	var data map[string][]byte
	var failure error
	var reads int
	read := func(context.Context) (map[string][]byte, error) {
		mutex.Lock()
		defer mutex.Unlock()
		reads++
		return data, failure
	}
	set := func(to map[string][]byte, err error) {
		mutex.Lock()
		defer mutex.Unlock()
		data, failure = to, err
	}
	count := func() int {
		mutex.Lock()
		defer mutex.Unlock()
		return reads
	}
	set(pair(), nil)
	e := start(t, func(o *Options) {
		o.Certificates, err = FromSecret(t.Context(), read, "127.0.0.1", o.Log, c.now)
		require.NoError(t, err)
	})
	assert.Equal(t, authority, e.handler.options.Certificates.Trust())
	first := e.served(t, authority, c)
	set(pair(), nil)
	c.add(59 * time.Second)
	assert.Equal(t, first.SerialNumber, e.served(t, authority, c).SerialNumber)
	require.Equal(t, 1, count())
	c.add(time.Second)
	second := e.served(t, authority, c)
	assert.NotEqual(t, first.SerialNumber, second.SerialNumber)
	e.served(t, authority, c)
	require.Equal(t, 2, count())

	broken := pair()
	broken["tls.key"] = []byte("-----BEGIN " + canary)
	set(broken, nil)
	for range 3 {
		c.add(time.Minute)
		assert.Equal(t, second.SerialNumber, e.served(t, authority, c).SerialNumber)
		assert.Equal(t, authority, e.handler.options.Certificates.Trust())
	}
	require.Equal(t, 5, count())
	const line = "the certificate for machines is not renewed"
	assert.Equal(t, 1, strings.Count(e.logged(), line))
	set(nil, errors.New("the API server is away"))
	c.add(time.Minute)
	assert.Equal(t, second.SerialNumber, e.served(t, authority, c).SerialNumber)
	assert.Equal(t, 2, strings.Count(e.logged(), line), "another problem")
	set(pair(), nil)
	c.add(time.Minute)
	assert.NotEqual(t, second.SerialNumber, e.served(t, authority, c).SerialNumber)
	set(nil, errors.New("the API server is away"))
	c.add(time.Minute)
	e.served(t, authority, c)
	assert.Equal(t, 3, strings.Count(e.logged(), line), "again after a success")
}

// TestSecret: a Secret that machines could not use is an error that names its key.
func TestSecret(t *testing.T) {
	t.Parallel()
	authority, authorityKey, err := NewAuthority(time.Now())
	require.NoError(t, err)
	other, _, err := NewAuthority(time.Now())
	require.NoError(t, err)
	root, rootKey := sign(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, DNSNames: []string{"root"}}, nil, nil)
	middle, middleKey := sign(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, DNSNames: []string{"middle"}}, root, rootKey)
	leaf := func(change func(*x509.Certificate)) map[string][]byte {
		certificate, key := leafOf(t, authority, authorityKey, change)
		return map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": authority}
	}
	with := func(data map[string][]byte, key string, value []byte) map[string][]byte {
		data[key] = value
		return data
	}
	chain, chainKey := leafOf(t, middle, middleKey, nil)
	self, selfKey := sign(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, nil, nil)
	for name, c := range map[string]struct {
		data map[string][]byte
		err  string
	}{
		"valid":             {leaf(nil), ""},
		"of a public one":   {with(leaf(nil), "ca.crt", nil), ""},
		"two authorities":   {with(leaf(nil), "ca.crt", append(other, authority...)), ""},
		"a chain":           {map[string][]byte{"tls.crt": append(chain, middle...), "tls.key": chainKey, "ca.crt": root}, ""},
		"signed by itself":  {map[string][]byte{"tls.crt": self, "tls.key": selfKey, "ca.crt": self}, ""},
		"the same, no ca":   {map[string][]byte{"tls.crt": self, "tls.key": selfKey}, "give it as ca.crt, too"},
		"empty":             {nil, "tls.crt is required"},
		"half a chain":      {map[string][]byte{"tls.crt": chain, "tls.key": chainKey, "ca.crt": root}, "tls.crt is not accepted by machines: x509: certificate signed by unknown authority"},
		"another authority": {with(leaf(nil), "ca.crt", other), "tls.crt is not accepted by machines"},
		"a ca of garbage":   {with(leaf(nil), "ca.crt", []byte(canary)), "ca.crt has something else than certificates"},
		"another key":       {with(leaf(nil), "tls.key", authorityKey), "tls.key is not the key of the certificate"},
		"another name":      {leaf(func(c *x509.Certificate) { c.IPAddresses = nil; c.DNSNames = []string{"a.example.com"} }), "tls.crt is not for the name or address in the URL of machines"},
		"expired":           {leaf(func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Now().Add(-2*day), time.Now().Add(-day) }), "the certificate of CN=leaf is valid from"},
		"expired, public":   {with(leaf(func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Now().Add(-2*day), time.Now().Add(-day) }), "ca.crt", nil), "the certificate of CN=leaf is valid from"},
		"for clients":       {leaf(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }), "incompatible key usage"},
	} {
		read := func(context.Context) (map[string][]byte, error) { return c.data, nil }
		got, err := FromSecret(t.Context(), read, "127.0.0.1", logr.Discard(), time.Now)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, name)
			assert.NotContains(t, err.Error(), canary)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, string(c.data["ca.crt"]), string(got.Trust()))
	}
	_, err = FromSecret(t.Context(), func(context.Context) (map[string][]byte, error) { return nil, http.ErrServerClosed }, "m", logr.Discard(), time.Now)
	require.ErrorIs(t, err, http.ErrServerClosed)
}
