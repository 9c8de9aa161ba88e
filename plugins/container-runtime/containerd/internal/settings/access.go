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

// access checks how a host is reached. The URL is empty where it is not known, or wrong.
func (r *resolver) access(at document.Path, want v1alpha1.RegistryAccess, url string) Access {
	for i, capability := range want.Capabilities {
		field := at.Field("capabilities").Index(i)
		r.oneOf(field, capability, "pull", "resolve", "push", "referrers")
		switch {
		case capability == "":
			r.refuse(field, "is empty", "remove it")
		case slices.Contains(want.Capabilities[:i], capability):
			r.refuse(field, "is listed twice", "remove one of the two")
		}
	}
	r.tls(at, want, url)
	if want.DialTimeout != "" {
		if d, err := time.ParseDuration(want.DialTimeout); err != nil || d <= 0 {
			r.refuse(at.Field("dialTimeout"), "must be a Go duration above zero", "write it like 500ms or 5s")
		}
	}
	return Access{RegistryAccess: want, Headers: r.headers(at.Field("headers"), want.Headers)}
}

func (r *resolver) tls(at document.Path, want v1alpha1.RegistryAccess, url string) {
	if want.CA != "" {
		if err := checkCertificates([]byte(want.CA)); err != nil {
			r.refuse(at.Field("ca"), err.Error(), certificatesHint)
		}
	}
	if want.Client != nil {
		r.clientCertificate(at.Field("client"), *want.Client)
	}
	needless := func(name string, given bool) {
		if given && strings.HasPrefix(url, "http://") {
			r.refuse(at.Field(name), "is for https, and the URL of this host says http", "correct the URL, or remove it")
		}
	}
	needless("ca", want.CA != "")
	needless("client", want.Client != nil)
	needless("skipVerify", want.SkipVerify)
	if want.SkipVerify {
		r.warn(at.Field("skipVerify"), "any certificate of this host is taken: whoever is between can change images")
		if want.CA != "" {
			r.refuse(at.Field("ca"), "is not looked at while skipVerify is true", "remove one of the two")
		}
	}
}

const certificatesHint = "give certificates as PEM, from -----BEGIN CERTIFICATE----- to its END line, and nothing but them"

// checkCertificates wants one certificate or more as PEM.
func checkCertificates(text []byte) error {
	count := 0
	for rest := text; ; count++ {
		if len(strings.TrimSpace(string(rest))) == 0 {
			break
		}
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
	return errors.New("holds a certificate that is cut off or damaged") // pem.Decode passes over it without a word
}

func (r *resolver) clientCertificate(at document.Path, c v1alpha1.ClientCertificate) {
	const keyHint = "give the key as PEM, not encrypted: PRIVATE KEY, EC PRIVATE KEY or RSA PRIVATE KEY"
	if err := checkCertificates([]byte(c.Cert)); err != nil {
		r.refuse(at.Field("cert"), err.Error(), certificatesHint)
		return
	}
	block, _ := pem.Decode(c.Key.Reveal())
	if block == nil || !strings.HasSuffix(block.Type, "PRIVATE KEY") {
		r.refuse(at.Field("key"), "is not a private key", keyHint)
		return
	}
	if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
		r.refuse(at.Field("key"), "is encrypted", keyHint)
		return
	}
	if _, err := tls.X509KeyPair([]byte(c.Cert), c.Key.Reveal()); err != nil { // never %w: it may quote
		r.refuse(at.Field("key"), "is not the key of the certificate", "give the key that the first certificate of cert was made for")
	}
}

func (r *resolver) headers(field document.Path, want map[string]v1alpha1.Secret) map[string]v1alpha1.Secret {
	all := map[string]v1alpha1.Secret{}
	spelled := map[string]document.Path{}
	for _, name := range sortedKeys(want) {
		at := field.Key(name)
		if !regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$").MatchString(name) {
			r.refuse(at, "is not the name of a header", "use letters, digits and -")
			continue
		}
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if twin, ok := spelled[canonical]; ok {
			r.refuse(at, "is the same header as "+string(twin), "keep one of the two")
		}
		if slices.Contains([]string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Trailer"}, canonical) {
			r.refuse(at, "is a header that HTTP sets by itself", "remove it")
		}
		if want[name].IsZero() {
			r.refuse(at, "has no value", "write {value: ...}")
		}
		r.secretText(at, want[name])
		all[canonical], spelled[canonical] = want[name], at
	}
	return all
}
