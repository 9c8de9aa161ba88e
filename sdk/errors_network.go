package sdk

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"syscall"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// networkCode classifies an error of the network: a wrong name or certificate is a Precondition, anything else may pass.
// Other errors are Internal.
func networkCode(err error) (pluginv1.Code, string) {
	name, isName := errors.AsType[*net.DNSError](err)
	certificate, isCertificate := errors.AsType[x509.CertificateInvalidError](err)
	timed, isTimed := errors.AsType[net.Error](err)
	request, isRequest := errors.AsType[*url.Error](err)
	errno, isErrno := errors.AsType[syscall.Errno](err)
	switch {
	case isName && name.IsNotFound:
		return pluginv1.CodePrecondition, "check the name, and that the name servers of this machine resolve it"
	case isCertificate && certificate.Reason == x509.Expired:
		return pluginv1.CodePrecondition, "compare the clock of this machine with the validity of the server's certificate"
	case isCertificate, is[x509.UnknownAuthorityError](err), is[x509.HostnameError](err), is[*tls.CertificateVerificationError](err):
		return pluginv1.CodePrecondition, "check the name of the server, and that this machine trusts its certificate authority"
	case is[tls.RecordHeaderError](err), is[tls.AlertError](err), errors.Is(err, http.ErrSchemeMismatch):
		return pluginv1.CodePrecondition, "check that the server at this address supports TLS, and its versions"
	case is[*net.AddrError](err):
		return pluginv1.CodePrecondition, "correct the address"
	case isName, is[*net.OpError](err), isRequest && request.Op != "parse", isTimed && timed.Timeout(), isErrno && ofNetwork(errno):
		return pluginv1.CodeRetry, ""
	default:
		return pluginv1.CodeInternal, ""
	}
}

func ofNetwork(errno syscall.Errno) bool {
	return slices.Contains([]syscall.Errno{
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.ENETUNREACH, syscall.ENETDOWN,
		syscall.EHOSTUNREACH, syscall.EHOSTDOWN, syscall.ETIMEDOUT, syscall.ENOTCONN,
	}, errno)
}
