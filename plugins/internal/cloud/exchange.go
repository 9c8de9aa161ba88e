package cloud

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Client sends requests by HTTP/1.1 over TLS 1.2 or later, each over a connection of its own, without cookies.
type Client struct {
	TLS TLS
	// Digest means that the host verifies what is fetched by its SHA-256, so that its end need not be certain.
	Digest bool
	// Redirects is how many redirects of a GET are followed. They lead to https alone and not to this machine or its link, and
	// another scheme, host or port gets neither headers nor the client certificate.
	Redirects int
	// Direct uses no proxy of the environment: for metadata services.
	Direct bool
	// SpreadUntil is the time until which 403 and 404 are a Retry, because new rights and objects take time to spread.
	SpreadUntil time.Time
	// Explain returns what an answer that is no success means, for services whose status does not say it. Nil: the status does.
	Explain func(answer *http.Response) Meaning

	dial func(ctx context.Context, network, address string) (net.Conn, error) // of tests; nil for a net.Dialer
}

// exchange is a request and its answer. A redirect leads to another exchange.
type exchange struct {
	client         Client
	caller         context.Context //nolint:containedctx // of this call alone
	first, request *http.Request   // of the document; the one that is sent
	foreign        bool            // a redirect led to another server than the document's
	proxy          *url.URL
}

func hostPort(u *url.URL) string { return net.JoinHostPort(u.Hostname(), port(u)) }

// server names the other end, for messages.
func (x *exchange) server() string {
	if x.proxy != nil {
		return hostPort(x.request.URL) + ", through the proxy " + hostPort(x.proxy) + ","
	}
	return hostPort(x.request.URL)
}
