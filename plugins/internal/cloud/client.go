// Package cloud makes the one or two requests that a source or a key provider needs: by net/http alone, with the rules of this
// repository for certificates, redirects, proxies and credentials, and with the errors of the contract.
package cloud

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/machineadm/machineadm/internal/httpclient"
	"github.com/machineadm/machineadm/sdk"
)

// MaxRedirects is the value of Client.Redirects for requests that are neither signed nor for a metadata service.
const MaxRedirects = 5

const (
	connectTime = 10 * time.Second // of a connection
	idleTime    = 30 * time.Second // without a byte of an answer
)

// Do sends a request. The answer has the status 200, or for other methods than GET one of 200 to 299. Its body ends with
// io.EOF only if it is complete. Errors are of the contract: Retry, or Precondition without a field; they name the server.
func (c Client) Do(r *http.Request) (*http.Response, error) {
	log.SetOutput(io.Discard) // net/http writes what a server sends out of turn to this log
	x := &exchange{client: c, caller: r.Context(), first: r, request: r}
	for n := 0; ; n++ {
		answer, err := x.send()
		if err != nil {
			return nil, err
		}
		moved := slices.Contains([]int{301, 302, 303, 307, 308}, answer.StatusCode)
		if !moved || r.Method != http.MethodGet || c.Redirects == 0 {
			return x.checked(answer)
		}
		_ = answer.Body.Close() // it is not read
		if n == c.Redirects {
			return nil, sdk.Precondition(x.server()+" redirects once more after as many redirects as are followed", "name the last URL in the document")
		}
		if x, err = x.follow(answer.Header.Get("Location")); err != nil {
			return nil, err
		}
	}
}

// send returns the answer, whatever its status. Its body is limited in time.
func (x *exchange) send() (*http.Response, error) {
	transport, err := x.transport()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(x.caller)
	request := x.request.Clone(ctx)
	request.Header.Set("Accept-Encoding", "identity")
	request.Header.Set("User-Agent", "machineadm")
	answer, err := transport.RoundTrip(request)
	if err != nil {
		cancel()
		return nil, x.failure(err)
	}
	answer.Body = &body{ReadCloser: answer.Body, x: x, cancel: cancel, idle: time.AfterFunc(idleTime, cancel)}
	return answer, nil
}

func (x *exchange) transport() (*http.Transport, error) {
	if !x.client.Direct {
		proxy, err := http.ProxyFromEnvironment(x.request)
		if err != nil || proxy != nil && !slices.Contains([]string{"http", "socks5", "socks5h"}, proxy.Scheme) {
			return nil, sdk.Precondition("the proxy of this machine's environment is not valid", "set HTTPS_PROXY and HTTP_PROXY to http://HOST:PORT")
		}
		x.proxy = proxy
	}
	if literal, err := netip.ParseAddr(x.request.URL.Hostname()); err == nil && x.foreign && isLocal(literal) {
		return nil, x.unreachable() // a proxy would connect to it unchecked
	}
	config := x.client.TLS.config(x.foreign)
	config.VerifyConnection = func(state tls.ConnectionState) error { // after the verification by authorities, and in addition to it
		if len(x.client.TLS.Pins) == 0 || x.client.TLS.pinned(state.VerifiedChains) {
			return nil
		}
		return sdk.Precondition("the certificate of "+x.server()+" has none of the pinned keys",
			"check that this is the right server; if its key was replaced, add the new one to spec.providerConfig.pins")
	}
	dial := x.client.dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: connectTime, Control: x.control}).DialContext
	}
	t := httpclient.Transport(httpclient.Options{
		Proxy: http.ProxyURL(x.proxy), Dial: dial, TLS: config,
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
			if answer.StatusCode == http.StatusOK {
				return nil
			}
			return x.refusedByProxy(answer)
		},
	})
	t.DisableKeepAlives, t.ForceAttemptHTTP2, t.Protocols = true, false, &http.Protocols{}
	t.Protocols.SetHTTP1(true)
	return t, nil
}

// control checks the address that a connection is made to, after the name was resolved.
func (x *exchange) control(_, address string, _ syscall.RawConn) error {
	if at, err := netip.ParseAddrPort(address); x.foreign && x.proxy == nil && (err != nil || isLocal(at.Addr())) {
		return x.unreachable()
	}
	return nil
}

func (x *exchange) unreachable() error {
	return sdk.Precondition(hostPort(x.first.URL)+" redirects to "+hostPort(x.request.URL)+
		", which is an address of this machine, of its link or of a metadata service, and is not followed", "name the last URL in the document")
}

// follow returns the exchange that a redirect asks for.
func (x *exchange) follow(location string) (*exchange, error) {
	refused := sdk.Precondition(x.server()+" redirects to another scheme than https, or to an address that is not valid",
		"name the last URL in the document")
	to, err := x.request.URL.Parse(location)
	if err != nil || location == "" || to.Scheme != "https" || httpclient.Redirect(x.request.URL, to) != nil || !isHost(to) {
		return nil, refused
	}
	next := &exchange{client: x.client, caller: x.caller, first: x.first, foreign: x.foreign || origin(to) != origin(x.first.URL)}
	if next.request, err = http.NewRequestWithContext(x.caller, http.MethodGet, to.String(), nil); err != nil {
		return nil, refused
	}
	if !next.foreign {
		next.request.Header = x.first.Header.Clone()
	}
	return next, nil
}

// body ends a transfer that stalls.
type body struct {
	io.ReadCloser
	x      *exchange
	cancel context.CancelFunc
	idle   *time.Timer
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.idle.Reset(idleTime)
	}
	if err != nil && err != io.EOF { //nolint:errorlint // io.ErrUnexpectedEOF is none
		err = b.x.interrupted()
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.idle.Stop()
	defer b.cancel()
	return b.ReadCloser.Close()
}
