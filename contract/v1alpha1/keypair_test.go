package v1alpha1

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestKeyPairs: the message names what is wrong with the key itself, and speaks of another certificate only for a key that can be read.
func TestKeyPairs(t *testing.T) {
	t.Parallel()
	signer := func() (*ecdsa.PrivateKey, string) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		der, err := x509.MarshalPKCS8PrivateKey(key)
		require.NoError(t, err)
		return key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}
	key, own := signer()
	_, other := signer()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	der, err = x509.MarshalPKIXPublicKey(key.Public())
	require.NoError(t, err)
	public := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	for _, kind := range []struct {
		check              func(KeyPair) (string, error)
		certificate, other string
	}{
		{KeyPair.CheckAuthority, authority, "is not the key of the certificate"},
		{KeyPair.Check, authority, "is not the key of the certificate"},
		{KeyPair.CheckServiceAccount, public, "is not the private key of the public key"},
	} {
		for text, want := range map[string]string{
			own:            "",
			"":             "is required",
			" \n":          "is required",
			other:          kind.other,
			"MHcCAQEEIA==": "is not a key in PEM format",
			"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n":                                         "is encrypted",
			"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nMAA=\n-----END RSA PRIVATE KEY-----\n": "is encrypted",
		} {
			field, err := kind.check(KeyPair{Certificate: kind.certificate, Key: NewSecret([]byte(text))})
			if want == "" {
				assert.NoError(t, err)
				continue
			}
			require.EqualError(t, err, want, text)
			assert.Equal(t, "key", field)
		}
		field, err := kind.check(KeyPair{Key: NewSecret([]byte(own))})
		require.EqualError(t, err, "is required")
		assert.Equal(t, "certificate", field)
	}
}

func TestCheckAddress(t *testing.T) {
	t.Parallel()
	const form, letters = "must be HOST:PORT", "has capital letters: the name of a host must be in lower case"
	for text, want := range map[string]string{
		"api.example.com:6443": "", "192.0.2.1:6443": "", "[2001:DB8::1]:6443": "", "[2001:db8::1]:1": "",
		"API.example.com:6443": letters, "internal-Lab-1.eu-west-1.elb.amazonaws.com:443": letters,
		"API.example.com": "must have a port", "API_x.example.com:1": form, "API:0": form, "API:x": form, "[API]:1": form,
		"1.2.3:6443": form, "2001:db8::1:6443": form, "": "must have a port",
	} {
		if err := CheckAddress(text); want == "" {
			assert.NoError(t, err, text)
		} else {
			assert.EqualError(t, err, want, text)
		}
	}
}

// TestParseMode: a mode in decimal, in quotes, is no other mode in octal.
func TestParseMode(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"0600", "0640", "0644", "755", "0750", "0400", "0440", "0444", "0604", "0705", "4"} {
		mode, err := ParseMode(text)
		if text == "4" {
			assert.EqualError(t, err, "gives others a right that the owner does not have")
			continue
		}
		assert.NoError(t, err, text)
		assert.NotZero(t, mode)
	}
	for text, want := range map[string]string{
		"": "is not a mode", "0": "is not a mode", "rw": "is not a mode", "01600": "is not a mode", "0o644": "is not a mode", "493": "is not a mode", "384": "is not a mode",
		"420": "gives others a right that the owner does not have", "416": "gives others a right that the owner does not have",
		"256": "gives others a right that the owner does not have", "436": "gives others a right that the owner does not have",
	} {
		_, err := ParseMode(text)
		assert.EqualError(t, err, want, text)
	}
}

// TestKeysOfKubernetes: a key that Kubernetes does not read, and a certificate that may not sign others, is refused at the certificate.
func TestKeysOfKubernetes(t *testing.T) {
	t.Parallel()
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	text := func(kind string, der []byte, err error) string {
		require.NoError(t, err)
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	for _, c := range []struct {
		key   crypto.Signer
		usage x509.KeyUsage
		want  string
	}{
		{curve, 0, ""},
		{curve, x509.KeyUsageCertSign, ""},
		{curve, x509.KeyUsageDigitalSignature, "is of an authority that may not sign certificates: its key usage lacks keyCertSign"},
		{edwards, 0, "has a key that is neither of RSA nor of ECDSA, which Kubernetes does not read"},
	} {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, KeyUsage: c.usage}
		der, err := x509.CreateCertificate(rand.Reader, template, template, c.key.Public(), c.key)
		certificate := text("CERTIFICATE", der, err)
		der, err = x509.MarshalPKCS8PrivateKey(c.key)
		pair := KeyPair{Certificate: certificate, Key: NewSecret([]byte(text("PRIVATE KEY", der, err)))}
		field, err := pair.CheckClusterAuthority()
		if c.want == "" {
			assert.NoError(t, err)
			continue
		}
		assert.Equal(t, "certificate", field)
		assert.EqualError(t, err, c.want)
		_, err = pair.CheckAuthority()
		assert.Equal(t, c.usage == 0, err == nil, "outside a cluster other keys are right as well")
	}
	der, err := x509.MarshalPKIXPublicKey(edwards.Public())
	public := text("PUBLIC KEY", der, err)
	der, err = x509.MarshalPKCS8PrivateKey(edwards)
	field, err := KeyPair{Certificate: public, Key: NewSecret([]byte(text("PRIVATE KEY", der, err)))}.CheckServiceAccount()
	assert.Equal(t, "certificate", field)
	assert.Error(t, err)
}
