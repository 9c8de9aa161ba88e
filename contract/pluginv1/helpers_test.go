package pluginv1_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

// serve serves over gRPC in memory and returns the host's end.
func serve(t *testing.T, register func(grpc.ServiceRegistrar)) *pluginv1.Client {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer()
	register(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///plugin", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closed := conn.Close()
		server.Stop()
		if err := errors.Join(closed, <-served); err != nil {
			t.Error(err)
		}
	})
	return pluginv1.NewClient(conn)
}

// fake is a Configurator of functions; each is set by the tests that need it.
type fake struct {
	describe func() (pluginv1.Description, error)
	plan     func(pluginv1.Request) (pluginv1.Plan, error)
	apply    func(pluginv1.Request, int, func(pluginv1.Event) error) (pluginv1.Finished, error)
	stop     func() error
}

func (f *fake) Describe(context.Context, pluginv1.DescribeRequest) (pluginv1.Description, error) {
	return f.describe()
}

func (f *fake) Plan(_ context.Context, r pluginv1.Request) (pluginv1.Plan, error) { return f.plan(r) }

func (f *fake) Apply(
	_ context.Context, r pluginv1.Request, limit int, send func(pluginv1.Event) error,
) (pluginv1.Finished, error) {
	return f.apply(r, limit, send)
}

func (f *fake) Stop(context.Context) error { return f.stop() }

func serveFake(t *testing.T, f *fake) *pluginv1.Client {
	t.Helper()
	return serve(t, func(s grpc.ServiceRegistrar) { pluginv1.Register(s, f) })
}

// raw is a plugin that was not written with this package.
type raw struct {
	pb.UnimplementedPluginServer
	pb.UnimplementedConfiguratorServer
	plan  error
	apply func(grpc.ServerStreamingServer[pb.ApplyEvent]) error
}

func (r *raw) Plan(context.Context, *pb.PlanRequest) (*pb.PlanResponse, error) { return nil, r.plan }

func (r *raw) Apply(_ *pb.ApplyRequest, stream grpc.ServerStreamingServer[pb.ApplyEvent]) error {
	return r.apply(stream)
}

func serveRaw(t *testing.T, r *raw) *pluginv1.Client {
	t.Helper()
	return serve(t, func(s grpc.ServiceRegistrar) {
		pb.RegisterPluginServer(s, r)
		pb.RegisterConfiguratorServer(s, r)
	})
}

func nothing(pluginv1.Event) error { return nil }
