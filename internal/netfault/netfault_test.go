package netfault_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/internal/netfault"
)

// TestOf has errors as net, crypto/tls and net/http return them.
func TestOf(t *testing.T) {
	t.Parallel()
	get := func(err error) error { return &url.Error{Op: "Get", URL: "https://a", Err: err} }
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	verify := func(err error) error { return get(&tls.CertificateVerificationError{Err: err}) }
	for name, c := range map[string]struct {
		err  error
		want netfault.Fault
	}{
		"nothing":            {nil, netfault.None},
		"a file":             {fs.ErrNotExist, netfault.None},
		"a URL":              {&url.Error{Op: "parse", URL: ":", Err: errors.New("missing protocol scheme")}, netfault.None},
		"an unknown name":    {get(dial(&net.DNSError{Err: "no such host", IsNotFound: true})), netfault.UnknownName},
		"no name server":     {get(dial(&net.DNSError{Err: "server misbehaving"})), netfault.Name},
		"a slow name server": {get(dial(&net.DNSError{Err: "i/o timeout", IsTimeout: true})), netfault.Name},
		"expired":            {verify(x509.CertificateInvalidError{Reason: x509.Expired}), netfault.Expired},
		"another purpose":    {verify(x509.CertificateInvalidError{Reason: x509.IncompatibleUsage}), netfault.Certificate},
		"unknown authority":  {verify(x509.UnknownAuthorityError{}), netfault.Certificate},
		"another server":     {verify(x509.HostnameError{Certificate: &x509.Certificate{}}), netfault.Certificate},
		"no TLS":             {get(tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}), netfault.NoTLS},
		"HTTP":               {get(http.ErrSchemeMismatch), netfault.NoTLS},
		"an alert":           {get(&net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")}), netfault.Handshake},
		"an address":         {dial(&net.AddrError{Err: "missing port in address", Addr: "a"}), netfault.Address},
		"no answer":          {get(dial(os.ErrDeadlineExceeded)), netfault.Timeout},
		"refused":            {get(dial(syscall.ECONNREFUSED)), netfault.Connection},
		"reset":              {fmt.Errorf("read: %w", syscall.ECONNRESET), netfault.Connection},
		"no answer by HTTP":  {get(errors.New("malformed HTTP response")), netfault.Request},
	} {
		assert.Equal(t, c.want, netfault.Of(c.err), name)
	}
	expired := verify(x509.CertificateInvalidError{Reason: x509.Expired})
	assert.True(t, netfault.Is(expired, netfault.Certificate), "a cause includes those of its kind")
	assert.False(t, netfault.Is(expired, netfault.Name))
}
