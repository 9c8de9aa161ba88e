package cloud

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

func parsed(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}

func pin(c *x509.Certificate) string {
	digest := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(digest[:])
}

// TestCertificates: a certificate is never a Retry, and one that is not valid now asks about the clock.
func TestCertificates(t *testing.T) {
	t.Parallel()
	a, other := newAuthority(t), newAuthority(t)
	valid := func(from, to time.Duration) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Now().Add(from), time.Now().Add(to) }
	}
	const year = 365 * 24 * time.Hour
	for name, test := range map[string]struct {
		edit  func(*x509.Certificate)
		tls   TLS
		text  string
		clock bool
	}{
		"valid":                 {edit: valid(-year, year), tls: TLS{CA: a.pem}},
		"pin of the authority":  {tls: TLS{CA: a.pem, Pins: []string{pin(other.certificate), pin(a.certificate)}}},
		"pin of another":        {tls: TLS{CA: a.pem, Pins: []string{pin(other.certificate)}}, text: "has none of the pinned keys"},
		"pin does not replace":  {tls: TLS{CA: other.pem, Pins: []string{pin(a.certificate)}}, text: "is of an unknown authority"},
		"another authority":     {tls: TLS{CA: other.pem}, text: "is of an unknown authority"},
		"authorities of the OS": {text: "is refused", tls: TLS{}},
		"expired":               {edit: valid(-2*year, -year), tls: TLS{CA: a.pem}, text: "has expired", clock: true},
		"the clock is behind":   {edit: valid(year, 2*year), tls: TLS{CA: a.pem}, text: "not yet valid", clock: true},
		"another name": {
			edit: func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(192, 0, 2, 1)} }, tls: TLS{CA: a.pem}, text: "not 127.0.0.1",
		},
		"for clients": {
			edit: func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }, tls: TLS{CA: a.pem}, text: "key usage",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := a.serve(t, func(http.ResponseWriter, *http.Request) {}, func(s *httptest.Server) {
				if test.edit != nil {
					s.TLS.Certificates = []tls.Certificate{a.issue(t, test.edit)}
				}
			})
			_, err := get(t.Context(), t, Client{TLS: test.tls}, at)
			if test.text == "" {
				require.NoError(t, err)
				return
			}
			if name == "authorities of the OS" { // another message if there are none at all
				test.text = strings.TrimPrefix(at, "https://")
			}
			e := refusal(t, err, pluginv1.CodePrecondition, test.text)
			assert.Contains(t, e.Message, strings.TrimPrefix(at, "https://"))
			assert.Equal(t, test.clock, strings.Contains(e.Hint, "clock"), e.Hint)
			if strings.HasPrefix(name, "pin of") {
				return
			}
			before, err := time.Parse(time.RFC3339, e.Facts["certificateNotBefore"])
			require.NoError(t, err)
			after, err := time.Parse(time.RFC3339, e.Facts["certificateNotAfter"])
			require.NoError(t, err)
			now, err := time.Parse(time.RFC3339, e.Facts["machineTime"])
			require.NoError(t, err)
			assert.WithinDuration(t, time.Now(), now, time.Minute)
			assert.Equal(t, test.clock, now.Before(before) || now.After(after))
		})
	}
}

func TestClientCertificate(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	at := a.serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.TLS.PeerCertificates[0].Subject.CommonName))
	},
		func(s *httptest.Server) { s.TLS.ClientAuth, s.TLS.ClientCAs = tls.RequireAndVerifyClientCert, pool })
	c := a.client()
	c.TLS.ClientCertificate = a.own(t)
	data, err := get(t.Context(), t, c, at)
	require.NoError(t, err)
	assert.Equal(t, "leaf", string(data))
}

func TestValidateTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	own := a.own(t)
	fields := func(c TLS) (all []string) {
		for _, v := range c.Validate(document.Path("spec.providerConfig")) {
			all = append(all, v.Field)
			assert.NotContains(t, v.Message+v.Hint, "c4n4ry")
		}
		return all
	}
	assert.Empty(t, fields(TLS{}))
	assert.Empty(t, fields(TLS{CA: "text before\n" + a.pem + a.pem, Pins: []string{pin(a.certificate)}, ClientCertificate: own}))
	for _, ca := range []string{
		"c4n4ry", "-----BEGIN CERTIFICATE-----\nc4n4ry\n-----END CERTIFICATE-----\n", string(own.Key.Reveal()), a.pem + string(own.Key.Reveal()),
		a.pem + "-----BEGIN CERTIFICATE-----\nc4n4ry", strings.Replace(a.pem, "MII", "MIJ", 1),
	} {
		assert.Equal(t, []string{"spec.providerConfig.ca"}, fields(TLS{CA: ca}), ca)
	}
	assert.Equal(t, []string{
		"spec.providerConfig.pins[1]", "spec.providerConfig.pins[2]", "spec.providerConfig.pins[3]", "spec.providerConfig.pins[4]",
		"spec.providerConfig.clientCertificate",
	}, fields(TLS{
		Pins:              []string{pin(a.certificate), "c4n4ry", "", "sha256//" + pin(a.certificate), pin(a.certificate) + "\n"},
		ClientCertificate: &ClientCertificate{Certificate: own.Certificate, Key: v1alpha1.NewSecret([]byte("c4n4ry"))},
	}))
	another := a.own(t)
	assert.Len(t, fields(TLS{ClientCertificate: &ClientCertificate{Certificate: own.Certificate, Key: another.Key}}), 1)
}

// FuzzCertificates: what is accepted is certificates alone, and an error does not quote the text.
func FuzzCertificates(f *testing.F) {
	f.Add("c4n4ry")
	f.Add("-----BEGIN CERTIFICATE-----\nYzRuNHJ5\n-----END CERTIFICATE-----\n")
	f.Add("-----BEGIN PRIVATE KEY-----\nA: c4n4ry\n\nYzRuNHJ5\n-----END PRIVATE KEY-----")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := certificates(text)
		require.NotEqual(t, err == nil, len(all) == 0)
		if err != nil {
			require.NotContains(t, err.Error(), "c4n4ry")
		}
	})
}
