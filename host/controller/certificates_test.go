package controller

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// authority makes a certificate and its key in PEM form, and the hash that kubeadm prints for it.
func authority(t *testing.T) (certificate, key []byte, hash string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &private.PublicKey, private)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		fmt.Sprintf("sha256:%x", sha256.Sum256(public))
}

func TestCertificateHashes(t *testing.T) {
	t.Parallel()
	first, key, firstHash := authority(t)
	second, _, secondHash := authority(t)
	broken := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("c4n4ry")})
	const none = "there is no certificate in PEM form"
	for about, c := range map[string]struct {
		bundle []byte
		want   []string
		err    string
	}{
		"one":                        {first, []string{firstHash}, ""},
		"a bundle":                   {slices.Concat(first, second), []string{firstHash, secondHash}, ""},
		"text around":                {slices.Concat([]byte("# old\n"), first, []byte("# new\n"), second, []byte("end")), []string{firstHash, secondHash}, ""},
		"a key beside":               {slices.Concat(key, first), []string{firstHash}, ""},
		"nothing":                    {nil, nil, none},
		"garbage":                    {[]byte("c4n4ry"), nil, none},
		"a key alone":                {key, nil, none},
		"a truncated one":            {first[:len(first)/2], nil, none},
		"no certificate in the PEM":  {broken, nil, "a certificate cannot be read"},
		"a broken one behind a good": {slices.Concat(first, broken), nil, "a certificate cannot be read"},
	} {
		got, err := certificateHashes(c.bundle)
		assert.Equal(t, c.want, got, about)
		if c.err == "" {
			assert.NoError(t, err, about)
		} else {
			assert.EqualError(t, err, c.err, about)
		}
	}
}
