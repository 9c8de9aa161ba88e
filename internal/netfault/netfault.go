// Package netfault classifies errors of network operations by what causes them, for every program. Its users say what a cause
// means for their operation.
package netfault

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"syscall"
)

// Fault is the cause of an error. Some include others: Of returns the first, in this order.
type Fault int

// The causes of errors.
const (
	None        Fault = iota // not of the network
	UnknownName              // the name servers have no such name
	Expired                  // the certificate of the server is not valid at the time of this machine
	Certificate              // the certificate of the server is refused
	NoTLS                    // the server does not answer by TLS
	Address                  // the address is not valid
	Name                     // the name is not resolved
	Handshake                // one side ended the TLS handshake
	Timeout                  // no answer in time
	Connection               // the connection was refused or lost, or there is no route
	Request                  // any other failure of an HTTP request
)

// Of returns the cause of an error.
func Of(err error) Fault {
	for f := UnknownName; f <= Request; f++ {
		if Is(err, f) {
			return f
		}
	}
	return None
}

// Is reports whether an error has a cause.
func Is(err error, f Fault) bool {
	switch f {
	case UnknownName:
		name, ok := errors.AsType[*net.DNSError](err)
		return ok && name.IsNotFound
	case Expired:
		invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
		return ok && invalid.Reason == x509.Expired
	case Certificate:
		return is[x509.CertificateInvalidError](err) || is[x509.UnknownAuthorityError](err) || is[x509.HostnameError](err) ||
			is[*tls.CertificateVerificationError](err)
	case NoTLS:
		return is[tls.RecordHeaderError](err) || is[tls.AlertError](err) || errors.Is(err, http.ErrSchemeMismatch)
	case Address:
		return is[*net.AddrError](err)
	case Name:
		return is[*net.DNSError](err)
	case Handshake:
		operation, ok := errors.AsType[*net.OpError](err)
		return ok && (operation.Op == "remote error" || operation.Op == "local error")
	case Timeout:
		timed, ok := errors.AsType[net.Error](err)
		return ok && timed.Timeout()
	case Connection:
		errno, ok := errors.AsType[syscall.Errno](err)
		return is[*net.OpError](err) || ok && slices.Contains([]syscall.Errno{
			syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.ENETUNREACH, syscall.ENETDOWN,
			syscall.EHOSTUNREACH, syscall.EHOSTDOWN, syscall.ETIMEDOUT, syscall.ENOTCONN,
		}, errno)
	case Request:
		request, ok := errors.AsType[*url.Error](err)
		return ok && request.Op != "parse"
	}
	return false
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
