package settings

import (
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// The directories of certificates that Go's programs read on Linux, so that SSL_CERT_DIR names them beside ours. The
// system's bundle is read in any case. Source: crypto/x509 of Go, root_linux.go.
const systemCertificates = "/etc/ssl/certs:/etc/pki/tls/certs"

// environment is what the daemon's own says of proxies and certificates.
func (r *resolver) environment(spec document.Path) []Variable {
	var all []Variable
	if p := r.spec.Proxy; p != nil {
		all = r.proxy(spec.Field("proxy"), *p)
	}
	if r.spec.TrustedCAs == "" {
		return all
	}
	if err := checkCertificates([]byte(r.spec.TrustedCAs)); err != nil {
		r.refuse(spec.Field("trustedCAs"), err.Error(), certificatesHint)
	}
	if !r.at.Windows {
		all = append(all, plainVariable("SSL_CERT_DIR", systemCertificates+":"+r.at.Trusted()))
	}
	return all
}

func (r *resolver) proxy(at document.Path, p v1alpha1.Proxy) []Variable {
	var all []Variable
	one := func(variableName, field, plain string, secret v1alpha1.Secret) {
		open, closed := at.Field(field), at.Field(field+"Secret")
		if plain != "" && !secret.IsZero() {
			r.refuse(closed, "is given as well as "+string(open), "keep one of the two")
		}
		if plain != "" {
			r.proxyURL(open, closed, plain, false)
			all = append(all, plainVariable(variableName, plain))
		}
		if !secret.IsZero() {
			r.proxyURL(open, closed, string(secret.Reveal()), true)
			all = append(all, Variable{Name: variableName, Value: secret, Secret: true})
		}
	}
	one("HTTP_PROXY", "http", p.HTTP, p.HTTPSecret)
	one("HTTPS_PROXY", "https", p.HTTPS, p.HTTPSSecret)
	for i, text := range p.NoProxy {
		field := at.Field("noProxy").Index(i)
		if err := checkNoProxy(text); err != nil {
			r.refuse(field, err.Error(), "write one of HOST, .HOST, ADDRESS, each with :PORT if need be, NETWORK/BITS or *")
		} else if slices.Contains(p.NoProxy[:i], text) {
			r.refuse(field, "is listed twice", "remove one of the two")
		}
	}
	if len(p.NoProxy) > 0 {
		if len(all) == 0 {
			r.refuse(at.Field("noProxy"), "means nothing without a proxy", "give http or https, or remove it")
		}
		all = append(all, plainVariable("NO_PROXY", strings.Join(p.NoProxy, ",")))
	}
	return all
}

// proxyURL checks the URL of a proxy. Credentials in the open form are refused with the way out.
func (r *resolver) proxyURL(open, closed document.Path, text string, secret bool) {
	field := open
	if secret {
		field = closed
	}
	if strings.Contains(text, "@") && !secret {
		r.refuse(open, "holds a user or a password", "give it as a secret: "+string(closed)+": {value: http://USER:PASSWORD@HOST:PORT}")
		return
	}
	u, err := checkURL(text, "http", "https", "socks5")
	if err == nil && u.Path != "" && u.Path != "/" {
		err = errors.New("must end behind its host and port")
	}
	if err != nil {
		r.refuse(field, err.Error(), "write http://HOST:PORT; of a user and a password, all but letters, digits and -._~ in percent encoding")
	}
}

// checkNoProxy wants what Go's programs understand. Source: golang.org/x/net/http/httpproxy.
func checkNoProxy(text string) error {
	if text == "*" {
		return nil
	}
	if strings.Contains(text, "/") {
		if _, err := netip.ParsePrefix(text); err != nil {
			return errors.New("is not a network")
		}
		return nil
	}
	// The zone of an address can be any text, line ends included, and no list of exceptions knows it.
	if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
		return nil
	}
	_, err := portOf(strings.TrimPrefix(strings.TrimPrefix(text, "*"), "."))
	return err
}
