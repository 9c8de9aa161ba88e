package serve

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
)

const (
	day           = 24 * time.Hour
	authorityLife = 3653 * day // ten years
	leafLife      = 30 * day
	// slow is how far the clock of a machine may be behind at its first boot.
	slow = day
)

// NewAuthority makes a certificate authority and its key, both as PEM, for FromAuthority.
func NewAuthority(now time.Time) (certificate, key []byte, err error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make the key of an authority: %w", err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "machineadm"}, NotBefore: now.Add(-slow), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("sign an authority: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the key of an authority: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), nil
}

// FromAuthority returns certificates that an authority signs here, for a DNS name or an IP address. They are not kept: a machine trusts
// the authority, and so every replica and every later certificate.
func FromAuthority(certificate, key []byte, host string, log logr.Logger, now func() time.Time) (*Certificates, error) {
	if field, err := (contract.KeyPair{Certificate: string(certificate), Key: contract.NewSecret(key)}).CheckAuthority(); err != nil {
		return nil, named(field, err)
	}
	authority, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, errors.New("tls.key is not the key of tls.crt")
	}
	template := x509.Certificate{
		Subject: pkix.Name{CommonName: "machineadm manager"}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	switch address, err := netip.ParseAddr(host); {
	case err == nil && address.Zone() == "":
		template.IPAddresses = []net.IP{address.AsSlice()}
	case len(validation.IsDNS1123Subdomain(host)) == 0:
		template.DNSNames = []string{host}
	default:
		return nil, fmt.Errorf("%q is neither a DNS name in lower case nor an IP address", host)
	}
	return newCertificates(context.Background(), log, now, func(_ context.Context, now time.Time) (issued, error) {
		return issue(authority, template, certificate, host, now)
	})
}

// issue signs a certificate that ends with its authority at the latest.
func issue(authority tls.Certificate, leaf x509.Certificate, trust []byte, host string, now time.Time) (issued, error) {
	signer, ok := authority.PrivateKey.(crypto.Signer)
	if !ok {
		return issued{}, errors.New("tls.key cannot sign")
	}
	leaf.NotBefore, leaf.NotAfter = now.Add(-slow), now.Add(leafLife)
	next := now.Add(leafLife * 2 / 3)
	if end := authority.Leaf.NotAfter; end.Before(now) {
		return issued{}, fmt.Errorf("tls.crt ended at %s: replace tls.crt and tls.key", end.UTC().Format(time.RFC3339))
	} else if end.Before(leaf.NotAfter) {
		leaf.NotAfter, next = end, end
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return issued{}, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &leaf, authority.Leaf, key.Public(), signer)
	if err != nil {
		return issued{}, fmt.Errorf("sign a certificate: %w", err)
	}
	pair := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	if pair.Leaf, err = x509.ParseCertificate(der); err == nil {
		err = check(&pair, trust, host, now)
	}
	return issued{&pair, trust, next}, err
}
