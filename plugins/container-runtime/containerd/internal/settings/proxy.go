package settings

import (
	"errors"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// TrustVariable names the directories of certificates that the daemon trusts.
const TrustVariable = "SSL_CERT_DIR"

// systemCertificates are the directories of certificates that Go's programs read on Linux: SSL_CERT_DIR names them beside
// ours. Go reads the system's bundle in any case. Source: crypto/x509 of Go, root_linux.go.
const systemCertificates = "/etc/ssl/certs:/etc/pki/tls/certs"

// environment is the daemon's environment for proxies and certificates.
func (r *resolver) environment() []Variable {
	var all []Variable
	if p := r.spec.Proxy; p != nil {
		all = slices.Concat(
			r.proxy("HTTP_PROXY", "spec.proxy.http", p.HTTP, p.HTTPSecret),
			r.proxy("HTTPS_PROXY", "spec.proxy.https", p.HTTPS, p.HTTPSSecret),
		)
		if (p.HTTP != "" || !p.HTTPSecret.IsZero()) && p.HTTPS == "" && p.HTTPSSecret.IsZero() {
			r.warn("spec.proxy", "has no https, so that registries with TLS, which is nearly all, are asked without a proxy: set https as well, usually to the same URL")
		}
		r.list("spec.proxy.noProxy", p.NoProxy, func(at document.Path, text string) {
			r.invalid(checkNoProxy(text), at, "write one of HOST, .HOST, ADDRESS, each with :PORT if need be, NETWORK/BITS or *")
		})
		if len(p.NoProxy) > 0 {
			all = append(all, plainVariable("NO_PROXY", strings.Join(p.NoProxy, ",")))
		}
	}
	if r.spec.TrustedCAs != "" {
		r.certificates("spec.trustedCAs", r.spec.TrustedCAs)
		if !r.at.Windows {
			all = append(all, plainVariable(TrustVariable, systemCertificates+":"+r.at.Trusted()))
		}
	}
	return all
}

// proxy is the variable of a proxy, which the document gives openly or as a secret.
func (r *resolver) proxy(name string, field document.Path, plain string, secret v1alpha1.Secret) []Variable {
	var all []Variable
	closed := field + "Secret"
	if plain != "" {
		if !r.refuse(strings.Contains(plain, "@"), field, "holds a user or a password",
			"give it as a secret: "+string(closed)+": {value: http://USER:PASSWORD@HOST:PORT}") {
			r.proxyURL(field, plain)
		}
		all = append(all, plainVariable(name, plain))
	}
	if !secret.IsZero() {
		r.proxyURL(closed, string(secret.Reveal()))
		all = append(all, Variable{Name: name, Value: secret, Secret: true})
	}
	return all
}

func (r *resolver) proxyURL(field document.Path, text string) {
	u, err := checkURL(text, "http", "https", "socks5")
	if err == nil && u.Path != "" && u.Path != "/" {
		err = errors.New("must end behind its host and port")
	}
	r.invalid(err, field, "write http://HOST:PORT; of a user and a password, all but letters, digits and -._~ in percent encoding")
}
