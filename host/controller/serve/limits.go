package serve

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// clientOf returns the address of a client from HOST:PORT. A client can choose among the addresses of an IPv6 network, so all have one.
func clientOf(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	address := at.Addr().Unmap().WithZone("")
	if network, err := address.Prefix(64); address.Is6() && err == nil {
		return network.Addr()
	}
	return address
}

// listener closes the connections beyond the limits.
type listener struct {
	net.Listener
	limits  Limits
	metrics *metrics

	mutex sync.Mutex
	total int
	of    map[netip.Addr]int
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		client := clientOf(c.RemoteAddr().String())
		exceeded := l.opened(client)
		if exceeded == "" {
			return &connection{c, sync.OnceFunc(func() { l.closed(client) })}, nil
		}
		l.metrics.refused.WithLabelValues(exceeded).Inc()
		_ = c.Close() // nothing was sent
	}
}

// opened counts a connection, or returns the limit that it exceeds.
func (l *listener) opened(client netip.Addr) (exceeded string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	switch {
	case l.total >= l.limits.Connections:
		return tooMany
	case l.of[client] >= l.limits.PerAddress:
		return tooManyAddress
	}
	l.total++
	l.of[client]++
	return ""
}

func (l *listener) closed(client netip.Addr) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.total--
	if l.of[client]--; l.of[client] == 0 {
		delete(l.of, client)
	}
}

// connection is counted until it is closed.
type connection struct {
	net.Conn
	closed func()
}

// Close implements net.Conn.
func (c *connection) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// denials limits the denied requests of each address by a token bucket. A bucket is new in recent and moves to older: it is forgotten
// once it is full again, or when there are too many.
type denials struct {
	limits Limits

	mutex         sync.Mutex
	recent, older map[netip.Addr]*rate.Limiter
	moved         time.Time
}

// exceeded reports whether a client has no denied request left.
func (d *denials) exceeded(client netip.Addr) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	bucket := d.bucket(client)
	return bucket != nil && bucket.Tokens() < 1
}

// add counts a denied request.
func (d *denials) add(client netip.Addr) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	bucket := d.bucket(client)
	if bucket == nil {
		bucket = rate.NewLimiter(rate.Limit(d.limits.DeniedRate), d.limits.DeniedBurst)
	}
	bucket.Allow()
	full := time.Duration(float64(d.limits.DeniedBurst) / d.limits.DeniedRate * float64(time.Second))
	crowded := d.recent[client] == nil && len(d.recent) >= d.limits.Addresses/2
	if crowded || time.Since(d.moved) > full {
		d.older, d.recent, d.moved = d.recent, map[netip.Addr]*rate.Limiter{}, time.Now()
	}
	d.recent[client] = bucket
}

func (d *denials) bucket(client netip.Addr) *rate.Limiter {
	if bucket := d.recent[client]; bucket != nil {
		return bucket
	}
	return d.older[client]
}
