// Package httpclient makes the HTTP clients of every program, with one set of rules: TLS 1.2 or later, no step from https to http, and
// redirects that take neither credentials nor the URL they come from to another server.
package httpclient

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	maxHeaderBytes = 64 << 10
	handshakeTime  = 10 * time.Second // of a connection, and again of TLS
	answerTime     = 30 * time.Second // until the header of an answer
)

// Options are what clients differ in. The zero value uses no proxy and follows no redirect: the redirect itself is the answer.
type Options struct {
	TLS *tls.Config
	// Proxy returns the proxy of a request.
	Proxy func(*http.Request) (*url.URL, error)
	// Redirects is how many redirects are followed, each of a GET or a HEAD alone.
	Redirects int
	// Dial replaces net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// OnProxyConnectResponse may refuse the answer of a proxy.
	OnProxyConnectResponse func(context.Context, *url.URL, *http.Request, *http.Response) error
}

// RedirectError is the reason why a redirect is not followed. It names no URL, because a URL can hold credentials.
type RedirectError struct{ Problem string }

// Error implements error.
func (e *RedirectError) Error() string { return "the server redirects " + e.Problem }

// Transport returns a transport, which follows no redirect.
func Transport(o Options) *http.Transport {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.TLS != nil {
		config = o.TLS.Clone()
		config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	}
	dial := o.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: handshakeTime}).DialContext
	}
	return &http.Transport{
		Proxy: o.Proxy, DialContext: dial, TLSClientConfig: config, OnProxyConnectResponse: o.OnProxyConnectResponse, DisableCompression: true,
		ForceAttemptHTTP2: true, TLSHandshakeTimeout: handshakeTime, ResponseHeaderTimeout: answerTime, MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// New returns a client. Its errors of redirects are a *RedirectError.
func New(o Options) *http.Client {
	return &http.Client{Transport: Transport(o), CheckRedirect: func(r *http.Request, via []*http.Request) error {
		first, last := via[0], via[len(via)-1]
		if o.Redirects == 0 || first.Method != http.MethodGet && first.Method != http.MethodHead {
			return http.ErrUseLastResponse
		}
		if len(via) > o.Redirects {
			return &RedirectError{fmt.Sprintf("more than %d times", o.Redirects)}
		}
		if err := Redirect(last.URL, r.URL); err != nil {
			return err
		}
		r.Header = first.Header.Clone() // without Referer; net/http drops credentials if the spelling of the host differs
		r.Header.Del("Referer")
		for _, earlier := range append(via[1:len(via):len(via)], r) { // once at another server, the chain has no credentials, also if it leads back
			if Origin(earlier.URL) != Origin(first.URL) {
				r.Header = http.Header{}
			}
		}
		return nil
	}}
}

// Redirect returns why a redirect from one URL to another is refused: it leaves TLS or HTTP, or brings credentials.
func Redirect(from, to *url.URL) error {
	switch {
	case to.Scheme == "http" && from.Scheme == "https":
		return &RedirectError{"from https to http, which is not followed"}
	case to.Scheme != "https" && to.Scheme != "http":
		return &RedirectError{"from " + from.Scheme + " to another scheme, which is not followed"}
	case to.User != nil || to.Host == "":
		return &RedirectError{"to a URL without a host or with credentials, which is not followed"}
	}
	return nil
}

// Origin is the scheme, host and port of a URL.
func Origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
