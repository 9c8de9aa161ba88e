package pluginv1

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"

	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

// stopKey is the key of the context that Stopping returns.
type stopKey struct{}

// Stopping returns a context that ends with a Stop for the Apply of ctx. OrderStops provides it.
func Stopping(ctx context.Context) context.Context {
	if stopping, ok := ctx.Value(stopKey{}).(context.Context); ok {
		return stopping
	}
	return context.Background()
}

// OrderStops makes a Stop reach every Apply that arrived before it: gRPC runs the handlers of calls in any order, but calls
// the tap in the order of arrival.
func OrderStops() grpc.ServerOption {
	s := &stops{open: map[context.Context]context.CancelFunc{}}
	return grpc.InTapHandle(s.tap)
}

// stops are the Applies without a Stop, by the context that Stop ends.
type stops struct {
	mu   sync.Mutex
	open map[context.Context]context.CancelFunc
}

func (s *stops) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch info.FullMethodName {
	case pb.Configurator_Apply_FullMethodName:
		stopping, stop := context.WithCancel(context.WithoutCancel(ctx))
		s.open[stopping] = stop
		context.AfterFunc(ctx, func() { s.forget(stopping) })
		ctx = context.WithValue(ctx, stopKey{}, stopping)
	case pb.Configurator_Stop_FullMethodName:
		for _, stop := range s.open {
			stop()
		}
		clear(s.open)
	}
	return ctx, nil
}

func (s *stops) forget(stopping context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, stopping)
}
