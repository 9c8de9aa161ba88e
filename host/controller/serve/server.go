package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"

	"github.com/go-logr/logr"
)

// Server is the endpoint. It is a Runnable of controller-runtime.
type Server struct {
	handler   *handler
	listening atomic.Bool
}

// New returns a server, which does not listen yet.
func New(o Options) (*Server, error) {
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	if o.Releases != "" {
		root, err := os.OpenRoot(o.Releases)
		if err != nil {
			return nil, fmt.Errorf("open the directory of releases: %w", err)
		}
		if err := root.Close(); err != nil {
			return nil, fmt.Errorf("close the directory of releases: %w", err)
		}
	}
	m, err := newMetrics(o.Registry, o.Certificates)
	if err != nil {
		return nil, err
	}
	return &Server{handler: &handler{
		options: o, metrics: m, denials: &denials{limits: o.Limits}, working: make(chan struct{}, o.Limits.Requests),
		releases: &releases{dir: o.Releases, log: o.Log, downloads: make(chan struct{}, o.Limits.Downloads)},
	}}, nil
}

// Ready is a probe, so that a Service leads machines to a replica that listens.
func (s *Server) Ready(*http.Request) error {
	if !s.listening.Load() {
		return errors.New("not listening for machines")
	}
	return nil
}

// NeedLeaderElection returns false: every replica serves.
func (*Server) NeedLeaderElection() bool { return false }

// Start listens and serves until the context ends, and then finishes the requests in work.
func (s *Server) Start(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.handler.options.Address)
	if err != nil {
		return fmt.Errorf("listen for machines: %w", err)
	}
	return s.serve(ctx, l)
}

func (s *Server) serve(ctx context.Context, l net.Listener) error {
	options := s.handler.options
	limits := options.Limits
	server := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: limits.Header, ReadTimeout: limits.Read, WriteTimeout: limits.Write, // and again for each part of an answer
		MaxHeaderBytes: limits.HeaderBytes, Protocols: &http.Protocols{}, DisableGeneralOptionsHandler: true,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) }, // requests in work are finished
		// net/http logs failed handshakes here, of which clients can make any number.
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(options.Log), slog.Level(-4)),
	}
	server.Protocols.SetHTTP1(true)
	server.SetKeepAlivesEnabled(false)
	limited := &listener{Listener: l, limits: limits, metrics: s.handler.metrics, of: map[netip.Addr]int{}}
	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(tls.NewListener(limited, &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true, // machines do not come back
			GetCertificate: options.Certificates.get,
		}))
	}()
	s.listening.Store(true)
	defer s.listening.Store(false)
	options.Log.Info("serving machines", "address", l.Addr().String())
	select {
	case err := <-ended:
		return fmt.Errorf("serve machines: %w", err)
	case <-ctx.Done():
	}
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.Drain)
	defer cancel()
	if err := server.Shutdown(draining); err != nil {
		_ = server.Close() // the connections that are left are cut, whatever it returns
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve machines: %w", err)
	}
	return nil
}
