package infrastructure

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// apiServerPort is that of kubeadm's API servers.
const apiServerPort = 6443

// proxy forwards connections to the control planes of a cluster.
type proxy struct {
	listener net.Listener
	probes   *http.Client

	mu      sync.Mutex
	targets []target
	next    int
}

// target is a control plane. Its connections end with its context.
type target struct {
	at    netip.AddrPort
	ctx   context.Context //nolint:containedctx // the life of the connections to it
	leave context.CancelFunc
}

func listen(ctx context.Context, address netip.Addr) (*proxy, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", netip.AddrPortFrom(address, 0).String())
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, probes: &http.Client{
		Timeout: 2 * time.Second,
		// Nothing is sent that needs protection.
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}, //nolint:gosec // as above
	}}
	go p.serve()
	return p, nil
}

func (p *proxy) address() netip.AddrPort {
	at, _ := p.listener.Addr().(*net.TCPAddr)
	return at.AddrPort()
}

// close ends the proxy and its connections.
func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.targets {
		t.leave()
	}
	p.targets = nil
}

func (p *proxy) add(address netip.Addr) {
	ctx, leave := context.WithCancel(context.Background())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.targets = append(p.targets, target{netip.AddrPortFrom(address, apiServerPort), ctx, leave})
}

func (p *proxy) remove(address netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var kept []target
	for _, t := range p.targets {
		if t.at.Addr() == address {
			t.leave()
		} else {
			kept = append(kept, t)
		}
	}
	p.targets = kept
}

// turn returns the targets, beginning with another one each time.
func (p *proxy) turn() []target {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	first := p.next % max(1, len(p.targets))
	return append(append([]target{}, p.targets[first:]...), p.targets[:first]...)
}

func (p *proxy) serve() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return // close was called
		}
		go func() {
			for _, t := range p.turn() {
				if p.ready(t) {
					t.forward(conn)
					break
				}
			}
			_ = conn.Close()
		}()
	}
}

// ready asks an API server as a load balancer does.
func (p *proxy) ready(t target) bool {
	request, err := http.NewRequestWithContext(t.ctx, http.MethodGet, "https://"+t.at.String()+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := p.probes.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// forward copies in both directions until one side ends or the target leaves.
func (t target) forward(from net.Conn) {
	to, err := new(net.Dialer).DialContext(t.ctx, "tcp", t.at.String())
	if err != nil {
		return
	}
	end := sync.OnceFunc(func() { _, _ = from.Close(), to.Close() })
	defer context.AfterFunc(t.ctx, end)()
	var copies sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		copies.Go(func() {
			defer end()
			_, _ = io.Copy(way[0], way[1])
		})
	}
	copies.Wait()
}
