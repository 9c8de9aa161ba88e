package kubeadm

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"time"
)

// Pair is a certificate and its key, both PEM.
type Pair struct{ Certificate, Key []byte }

// Authority returns the certificate authority of the cluster that a worker joins, and of one that is created without its own.
func Authority() (Pair, error) { return issue("kubernetes", nil) }

// Base64 returns the certificate as kubeconfigs have it.
func (p Pair) Base64() string { return base64.StdEncoding.EncodeToString(p.Certificate) }

// Hash returns the hash of the public key, in the form of caCertHashes.
func (p Pair) Hash() (string, error) {
	block, _ := pem.Decode(p.Certificate)
	if block == nil {
		return "", errMissing
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// issue makes a certificate for servers and clients, or without a parent an authority. The same names make the same bytes.
func issue(name string, parent *Pair, organizations ...string) (Pair, error) {
	seed := sha256.Sum256([]byte("testenv " + name))
	key := ed25519.NewKeyFromSeed(seed[:])
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: organizations},
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC),
		DNSNames: []string{"kubernetes", "localhost"}, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signedBy, signer := template, any(key)
	if parent == nil {
		template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
	} else {
		pair, err := tls.X509KeyPair(parent.Certificate, parent.Key)
		if err != nil {
			return Pair{}, err
		}
		signedBy, signer = pair.Leaf, pair.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signedBy, key.Public(), signer)
	if err != nil {
		return Pair{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, err
}
