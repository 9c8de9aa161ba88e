// Package authority is a private certificate authority for the servers of tests.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// Authority is a certificate authority that no machine trusts yet.
type Authority struct {
	Certificate []byte // PEM
	parsed      *x509.Certificate
	key         *ecdsa.PrivateKey
}

// validity is wide, because the clock of the machine may be wrong.
const validity = 10 * 365 * 24 * time.Hour

// New makes an authority.
func New(t testing.TB) Authority {
	t.Helper()
	a, err := newAuthority()
	if err != nil {
		t.Fatalf("make a CA: %v", err)
	}
	return a
}

func newAuthority() (Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Authority{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "testenv CA"},
		NotBefore: time.Now().Add(-validity), NotAfter: time.Now().Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Authority{}, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return Authority{}, err
	}
	return Authority{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), parsed: parsed, key: key}, nil
}

// Key returns the key of the authority, in PEM.
func (a Authority) Key(t testing.TB) []byte {
	t.Helper()
	key, err := encoded(a.key)
	if err != nil {
		t.Fatalf("encode the key of a CA: %v", err)
	}
	return key
}

func encoded(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// Issue makes the certificate of a server, and its key, both PEM. What the edits change is signed as it is, valid or not.
func (a Authority) Issue(t testing.TB, name string, edits ...func(*x509.Certificate)) (certificate, key []byte) {
	t.Helper()
	certificate, key, err := a.issue(name, edits)
	if err != nil {
		t.Fatalf("issue a certificate for %s: %v", name, err)
	}
	return certificate, key
}

func (a Authority) issue(name string, edits []func(*x509.Certificate)) (certificate, key []byte, err error) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-validity), NotAfter: time.Now().Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, edit := range edits {
		edit(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.parsed, own.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	key, err = encoded(own)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key, err
}
