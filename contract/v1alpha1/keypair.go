package v1alpha1

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

// CheckAuthority returns which of the fields certificate and key does not belong to a certificate authority, and why. Its errors
// quote no value; errors of package crypto can, and are not passed on.
func (p KeyPair) CheckAuthority() (field string, err error) {
	c, err := CertificateOf(p.Certificate)
	if err == nil && !c.IsCA {
		err = errors.New("is not a certificate authority")
	}
	if err == nil && c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0 {
		err = errors.New("is of an authority that may not sign certificates: its key usage lacks keyCertSign")
	}
	if err != nil {
		return "certificate", err
	}
	return p.Check()
}

// CheckClusterAuthority does the same for an authority of a cluster, whose key Kubernetes has to read.
func (p KeyPair) CheckClusterAuthority() (field string, err error) {
	if c, err := CertificateOf(p.Certificate); err == nil && !isOfKubernetes(c.PublicKey) {
		return "certificate", errors.New("has a key that is neither of RSA nor of ECDSA, which Kubernetes does not read")
	}
	return p.CheckAuthority()
}

// Check returns which of the fields does not belong to a certificate with its key, and why.
func (p KeyPair) Check() (field string, err error) {
	if _, err := CertificateOf(p.Certificate); err != nil {
		return "certificate", err
	}
	if err := p.checkKey(); err != nil {
		return "key", err
	}
	if _, err := tls.X509KeyPair([]byte(p.Certificate), p.Key.Reveal()); err != nil {
		return "key", errors.New("is not the key of the certificate")
	}
	return "", nil
}

// isOfKubernetes reports whether Kubernetes reads a key. Source: k8s.io/client-go/util/keyutil, and TryLoadKeyFromDisk of kubeadm.
func isOfKubernetes(public crypto.PublicKey) bool {
	switch public.(type) {
	case *rsa.PublicKey, *ecdsa.PublicKey:
		return true
	}
	return false
}

// checkKey returns what keeps the key from being compared with a certificate.
func (p KeyPair) checkKey() error {
	text := bytes.TrimSpace(p.Key.Reveal())
	block, _ := pem.Decode(text)
	switch {
	case len(text) == 0:
		return errors.New("is required")
	case block == nil:
		return errors.New("is not a key in PEM format")
	case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
		return errors.New("is encrypted")
	}
	return nil
}

// CheckServiceAccount does the same for a public and a private key.
func (p KeyPair) CheckServiceAccount() (field string, err error) {
	block, rest := pem.Decode([]byte(p.Certificate))
	if p.Certificate == "" {
		return "certificate", errors.New("is required")
	}
	if block == nil || block.Type != "PUBLIC KEY" || len(bytes.TrimSpace(rest)) > 0 {
		return "certificate", errors.New("is not one PUBLIC KEY in PEM format")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return "certificate", errors.New("is not a public key")
	}
	if !isOfKubernetes(public) {
		return "certificate", errors.New("is neither of RSA nor of ECDSA, which Kubernetes does not read")
	}
	if err := p.checkKey(); err != nil {
		return "key", err
	}
	signer := signerOf(p.Key.Reveal())
	if known, ok := public.(interface{ Equal(crypto.PublicKey) bool }); signer == nil || !ok || !known.Equal(signer.Public()) {
		return "key", errors.New("is not the private key of the public key")
	}
	return "", nil
}

// signerOf reads a private key in one of the forms that kubeadm reads, or returns nil.
func signerOf(text []byte) crypto.Signer {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil
	}
	var key any
	for _, parse := range []func([]byte) (any, error){
		x509.ParsePKCS8PrivateKey,
		func(der []byte) (any, error) { return x509.ParsePKCS1PrivateKey(der) },
		func(der []byte) (any, error) { return x509.ParseECPrivateKey(der) },
	} {
		if found, err := parse(block.Bytes); err == nil {
			key = found
		}
	}
	signer, _ := key.(crypto.Signer)
	return signer
}

// CertificateOf returns the first of one certificate or more in PEM format. Its errors never quote the text.
func CertificateOf(text string) (*x509.Certificate, error) {
	var first *x509.Certificate
	rest := []byte(text)
	for len(bytes.TrimSpace(rest)) > 0 {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			return nil, errors.New("has something else than certificates in PEM format")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("has a certificate that cannot be read")
		}
		if first == nil {
			first = c
		}
	}
	if first == nil {
		return nil, errors.New("is required")
	}
	return first, nil
}
