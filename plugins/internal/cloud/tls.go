package cloud

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// TLS is the part of a providerConfig that says which servers are accepted. The zero TLS accepts those that the machine trusts.
type TLS struct {
	// CA holds the certificates of the only authorities that are trusted, as PEM.
	CA string `json:"ca,omitempty"`
	// Pins are digests of public keys, as base64 of SHA-256 of SubjectPublicKeyInfo (RFC 7469). A verified chain has to have one.
	Pins []string `json:"pins,omitempty"`
	// ClientCertificate authenticates the machine.
	ClientCertificate *ClientCertificate `json:"clientCertificate,omitempty"`
}

// ClientCertificate is a certificate and its key.
type ClientCertificate struct {
	// Certificate is the certificate, followed by the certificates of its issuers, as PEM.
	Certificate string `json:"certificate"`
	// Key is the private key, as PEM.
	Key v1alpha1.Secret `json:"key"`
}

// Validate returns the violations of the fields below the field of a providerConfig.
func (t TLS) Validate(field document.Path) []sdk.Violation {
	var all []sdk.Violation
	refuse := func(at document.Path, message, hint string) {
		all = append(all, sdk.Violation{Field: string(at), Message: message, Hint: hint})
	}
	if _, err := certificates(t.CA); t.CA != "" && err != nil {
		refuse(field.Field("ca"), err.Error(), "give the certificates of the authorities as PEM")
	}
	for i, pin := range t.Pins {
		digest, err := base64.StdEncoding.Strict().DecodeString(pin)
		if err != nil || len(digest) != sha256.Size || base64.StdEncoding.EncodeToString(digest) != pin { // the decoder skips line breaks
			refuse(field.Field("pins").Index(i), "is not the base64 of a SHA-256", "see the README of the plugin for the command that prints it")
		}
	}
	if c := t.ClientCertificate; c != nil {
		if _, err := c.pair(); err != nil {
			refuse(field.Field("clientCertificate"), "is not a certificate with its private key, both as PEM", "the key must not be encrypted")
		}
	}
	return all
}

// certificates reads PEM that holds nothing but certificates.
func certificates(text string) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if len(all) == 0 || strings.Contains(string(rest), "-----BEGIN") {
				return nil, errors.New("has no certificate, or one that is not PEM")
			}
			return all, nil
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil {
			return nil, errors.New("has a block that is not a certificate") // not err, which can quote the block
		}
		all = append(all, c)
	}
}

func (c *ClientCertificate) pair() (tls.Certificate, error) {
	return tls.X509KeyPair([]byte(c.Certificate), c.Key.Reveal())
}

// config returns the configuration of a connection. What Validate refuses is left out, so that it trusts no authority and has no
// client certificate then. The client certificate is for the server that the document names.
func (t TLS) config(foreign bool) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		config.RootCAs = x509.NewCertPool()
		authorities, _ := certificates(t.CA)
		for _, c := range authorities {
			config.RootCAs.AddCert(c)
		}
	}
	if t.ClientCertificate != nil && !foreign {
		if own, err := t.ClientCertificate.pair(); err == nil {
			config.Certificates = []tls.Certificate{own}
		}
	}
	return config
}

// pinned reports whether a verified chain has one of the pinned keys.
func (t TLS) pinned(chains [][]*x509.Certificate) bool {
	return slices.ContainsFunc(slices.Concat(chains...), func(c *x509.Certificate) bool {
		digest := sha256.Sum256(c.RawSubjectPublicKeyInfo)
		return slices.Contains(t.Pins, base64.StdEncoding.EncodeToString(digest[:]))
	})
}
