package sdk

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// judgeNetwork classifies what the network refuses: an operator corrects a name or a certificate, anything else may pass.
// An error that has nothing to do with the network is Internal.
func judgeNetwork(err error) (pluginv1.Code, string) {
	name, isName := errors.AsType[*net.DNSError](err)
	certificate, isCertificate := errors.AsType[x509.CertificateInvalidError](err)
	_, otherAuthority := errors.AsType[x509.UnknownAuthorityError](err)
	_, otherHost := errors.AsType[x509.HostnameError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, notTLS := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	_, isAddress := errors.AsType[*net.AddrError](err)
	timed, isTimed := errors.AsType[net.Error](err)
	_, isOperation := errors.AsType[*net.OpError](err)
	request, isRequest := errors.AsType[*url.Error](err)
	errno, isErrno := errors.AsType[syscall.Errno](err)
	switch {
	case isName && name.IsNotFound:
		return pluginv1.CodePrecondition, "see that the name is right and that the name servers of this machine know it"
	case isCertificate && certificate.Reason == x509.Expired:
		return pluginv1.CodePrecondition, "compare the clock of this machine with the validity of the server's certificate"
	case isCertificate, otherAuthority, otherHost, untrusted:
		return pluginv1.CodePrecondition, "see that the name of the server is right, and that this machine trusts its certificate authority"
	case notTLS, alert, errors.Is(err, http.ErrSchemeMismatch):
		return pluginv1.CodePrecondition, "see that the address is that of a server which speaks TLS, and which versions it takes"
	case isAddress:
		return pluginv1.CodePrecondition, "correct the address"
	case isName, isOperation, isRequest && request.Op != "parse", isTimed && timed.Timeout(), isErrno && ofNetwork(errno):
		return pluginv1.CodeRetry, ""
	default:
		return pluginv1.CodeInternal, ""
	}
}

func ofNetwork(errno syscall.Errno) bool {
	switch errno {
	case syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.ENETUNREACH, syscall.ENETDOWN,
		syscall.EHOSTUNREACH, syscall.EHOSTDOWN, syscall.ETIMEDOUT, syscall.ENOTCONN:
		return true
	default:
		return false
	}
}
