package cloud

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/netfault"
	"github.com/machineadm/machineadm/sdk"
)

// maxRetryAfter bounds the pause that a server asks for.
const maxRetryAfter = 5 * time.Minute

// checked returns an answer that is a success, and otherwise the error that its status means.
func (x *exchange) checked(answer *http.Response) (*http.Response, error) {
	var err error
	switch get := x.request.Method == http.MethodGet; {
	case get && answer.StatusCode != http.StatusOK, answer.StatusCode/100 != 2:
		err = statusError{x.status(answer), answer.StatusCode}
	case get && answer.Header.Get("Content-Encoding") != "" && answer.Header.Get("Content-Encoding") != "identity":
		err = sdk.Precondition(x.server()+" sends a compressed object although the request excludes that",
			"store the object without Content-Encoding")
	case get && !x.client.Digest && answer.ContentLength < 0 && len(answer.TransferEncoding) == 0:
		err = sdk.Precondition(x.server()+" sends neither the length of the object nor chunks, so that an incomplete one cannot be recognized",
			"set spec.sha256, or use a server that sends Content-Length")
	default:
		return answer, nil
	}
	_ = answer.Body.Close() // it is not read
	return nil, err
}

// status returns the error of an answer that is no success.
func (x *exchange) status(answer *http.Response) error {
	code := answer.StatusCode
	message := x.server() + " answers with the status " + described(code)
	var m Meaning
	if x.client.Explain != nil {
		m = x.client.Explain(answer)
		code = cmp.Or(m.Status, code)
	}
	if m.Code != "" {
		message += ": " + m.Code
	}
	switch code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return sdk.Retry(retryAfter(answer.Header, time.Now()), message)
	case http.StatusForbidden, http.StatusNotFound:
		if time.Now().Before(x.client.SpreadUntil) {
			return sdk.Retry(0, message)
		}
	}
	hint := map[int]string{
		http.StatusUnauthorized: "check the credentials in spec.providerConfig",
		http.StatusForbidden:    "check that the credentials in spec.providerConfig have the right for this request",
		http.StatusNotFound:     "check the location, and that the object is there",
		http.StatusGone:         "the object was there and is no longer; a link that works once was used",
	}[code]
	switch {
	case code >= 500:
		return sdk.Retry(retryAfter(answer.Header, time.Now()), message)
	case hint != "" && x.bySource():
		return sdk.Answered(sdk.Precondition(message, cmp.Or(m.Hint, hint)), code)
	case code/100 == 3:
		hint = "redirects are not followed here: name the last URL in the document"
	}
	return sdk.Precondition(message, cmp.Or(m.Hint, hint))
}

// bySource reports whether an answer certainly comes from the server: a proxy answers requests of plain http itself (SPEC P-48).
func (x *exchange) bySource() bool {
	return x.proxy == nil || x.proxy.Scheme != "http" || x.request.URL.Scheme != "http"
}

func described(code int) string {
	return strings.TrimSuffix(fmt.Sprintf("%d (%s)", code, http.StatusText(code)), " ()")
}

// retryAfter is the pause of Retry-After (RFC 9110), in seconds or as a date, at most maxRetryAfter.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, min(at.Sub(now), maxRetryAfter))
	}
	return 0
}

func (x *exchange) refusedByProxy(answer *http.Response) error {
	message := x.server() + " cannot be reached: the proxy answers with the status " + described(answer.StatusCode)
	if answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests {
		return sdk.Retry(retryAfter(answer.Header, time.Now()), message)
	}
	return sdk.Precondition(message, "allow the request in the proxy, or add the host to NO_PROXY; credentials for a proxy are not supported")
}

// failure returns the error of a request without an answer. The messages of net/http can quote the URL or what the server sent,
// so they are not used.
func (x *exchange) failure(err error) error {
	if x.caller.Err() != nil {
		return x.caller.Err()
	}
	known, isKnown := errors.AsType[*pluginv1.Error](err)
	certificate, isCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	errno, isErrno := errors.AsType[syscall.Errno](err)
	_, isHeader := errors.AsType[textproto.ProtocolError](err) // a header that ends within a line
	retry := func(reason string) error { return sdk.Retry(0, x.server()+" cannot be reached: "+reason) }
	switch {
	case isKnown:
		return known
	case isCertificate:
		return x.certificate(certificate)
	case netfault.Is(err, netfault.UnknownName):
		return retry("the name has no address")
	case netfault.Is(err, netfault.Name):
		return retry("the name servers of this machine do not answer")
	case netfault.Is(err, netfault.NoTLS):
		return sdk.Precondition(x.server()+" does not answer by TLS", "check the port, and that the server supports https")
	case netfault.Is(err, netfault.Handshake), strings.HasPrefix(err.Error(), "tls: "):
		return sdk.Precondition(fmt.Sprintf("%s ends the TLS handshake: %v", x.server(), operationError(err)),
			"check the versions of TLS of the server, and whether it asks for a client certificate")
	case netfault.Is(err, netfault.Timeout):
		return retry("no answer in time")
	case isErrno:
		return retry(errno.Error())
	case netfault.Is(err, netfault.Connection), isHeader, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return retry("the connection ended before an answer")
	}
	return sdk.Precondition(x.server()+" does not answer by HTTP, or its headers are larger than 64 KiB", "check that this is the right server and port")
}

// operationError returns the error inside the error of a network operation, which repeats the addresses.
func operationError(err error) error {
	if operation, ok := errors.AsType[*net.OpError](err); ok {
		return operation.Err
	}
	return err
}

// certificate explains a certificate that is refused. Retrying does not help, but the clock of the machine may be the cause.
func (x *exchange) certificate(err *tls.CertificateVerificationError) error {
	now := time.Now()
	hint := "check that this is the right server, and that this machine or spec.providerConfig.ca has its certificate authority"
	facts := map[string]string{"machineTime": now.UTC().Format(time.RFC3339)}
	own, _ := certificates(x.client.TLS.CA) // validated before
	for i, c := range append(own, err.UnverifiedCertificates...) {
		if i == len(own) {
			maps.Copy(facts, map[string]string{
				"certificateNotBefore": c.NotBefore.UTC().Format(time.RFC3339), "certificateNotAfter": c.NotAfter.UTC().Format(time.RFC3339),
			})
		}
		if now.Before(c.NotBefore) || now.After(c.NotAfter) {
			hint = "check the clock of this machine; if it is right, the certificate has to be renewed"
		}
	}
	message := fmt.Sprintf("the certificate of %s is refused: %v", x.server(), err.Err)
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err.Err); ok {
		message = "the certificate of " + x.server() + " is of an unknown authority, or of one that is not valid now"
	}
	return sdk.WithFacts(sdk.Precondition(message, hint), facts)
}

// interrupted returns the error of a body that ends before it is complete.
func (x *exchange) interrupted() error {
	if x.caller.Err() != nil {
		return x.caller.Err()
	}
	return sdk.Retry(0, "the connection to "+x.server()+" ended before the object was complete, or no byte came for 30 s")
}
