package settings

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// access checks how a host is reached. The URL is empty where it is unknown or invalid.
func (r *resolver) access(at document.Path, want v1alpha1.RegistryAccess, url string) Access {
	r.list(at+".capabilities", want.Capabilities, func(document.Path, string) {})
	if want.Capabilities != nil && len(want.Capabilities) == 0 {
		r.warn(at+".capabilities", "is empty, which containerd takes for all of them: list those that the host has, or remove it")
	}
	if want.CA != "" {
		r.certificates(at+".ca", want.CA)
	}
	if want.Client != nil {
		r.clientCertificate(at+".client", *want.Client)
	}
	plain := strings.HasPrefix(url, "http://")
	for _, f := range []struct {
		name  document.Path
		given bool
	}{{".ca", want.CA != ""}, {".client", want.Client != nil}, {".skipVerify", want.SkipVerify}} {
		r.refuse(f.given && plain, at+f.name, "is for https, and the URL of this host says http", "correct the URL, or remove it")
	}
	if want.SkipVerify {
		r.warn(at+".skipVerify", "any certificate of this host is accepted: an attacker on the network can change images")
		r.refuse(want.CA != "", at+".ca", "is not looked at while skipVerify is true", "remove one of the two")
	}
	if want.DialTimeout != "" {
		d, err := time.ParseDuration(want.DialTimeout)
		r.refuse(err != nil || d <= 0, at+".dialTimeout", "must be a Go duration above zero", "write it like 500ms or 5s")
	}
	return Access{RegistryAccess: want, Headers: r.headers(at+".headers", want.Headers)}
}

// certificates refuses a text that is not one certificate or more as PEM. It reports whether the text is valid.
func (r *resolver) certificates(at document.Path, text string) bool {
	return !r.invalid(checkCertificates([]byte(text)), at,
		"give certificates as PEM, from -----BEGIN CERTIFICATE----- to its END line, and nothing but them")
}

func checkCertificates(text []byte) error {
	count := 0
	for rest := text; len(bytes.TrimSpace(rest)) > 0; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return errors.New("is not PEM throughout")
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return errors.New("holds a private key")
		}
		if block.Type != "CERTIFICATE" {
			return errors.New("holds something else than certificates")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil { // never %w: it may quote
			return errors.New("holds a certificate that cannot be read")
		}
	}
	switch count {
	case 0:
		return errors.New("holds no certificate")
	case bytes.Count(text, []byte("-----BEGIN ")):
		return nil
	}
	return errors.New("holds a certificate that is cut off or damaged") // pem.Decode skips it silently
}

func (r *resolver) clientCertificate(at document.Path, c v1alpha1.ClientCertificate) {
	const hint = "give the key as PEM, not encrypted: PRIVATE KEY, EC PRIVATE KEY or RSA PRIVATE KEY"
	if !r.certificates(at+".cert", c.Cert) {
		return
	}
	block, _ := pem.Decode(c.Key.Reveal())
	if r.refuse(block == nil || !strings.HasSuffix(block.Type, "PRIVATE KEY"), at+".key", "is not a private key", hint) ||
		r.refuse(block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "", at+".key", "is encrypted", hint) {
		return
	}
	_, err := tls.X509KeyPair([]byte(c.Cert), c.Key.Reveal()) // its error may quote
	r.refuse(err != nil, at+".key", "is not the key of the certificate", "give the key that the first certificate of cert was made for")
}

func (r *resolver) headers(field document.Path, want map[string]v1alpha1.Secret) map[string]v1alpha1.Secret {
	all := map[string]v1alpha1.Secret{}
	spelled := map[string]document.Path{}
	for _, name := range sortedKeys(want) {
		at := field.Key(name)
		if r.refuse(!regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$").MatchString(name), at, "is not the name of a header", "use letters, digits and -") {
			continue
		}
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		twin := spelled[canonical]
		r.refuse(twin != "", at, "is the same header as "+string(twin), "keep one of the two")
		r.refuse(slices.Contains([]string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Trailer"}, canonical), at,
			"is a header that HTTP sets by itself", "remove it")
		r.refuse(want[name].IsZero(), at, "has no value", "write {value: ...}")
		r.secretText(at, want[name])
		all[canonical], spelled[canonical] = want[name], at
	}
	return all
}
