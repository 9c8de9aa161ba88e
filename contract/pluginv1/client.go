package pluginv1

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

// Client calls a plugin over a connection. It is safe for concurrent use.
//
// Its errors are *Error, ErrCrashed, or the error of the context.
type Client struct {
	plugin       pb.PluginClient
	configurator pb.ConfiguratorClient
	source       pb.SourceClient
	keys         pb.KeyProviderClient
	conn         grpc.ClientConnInterface
}

var _ Configurator = (*Client)(nil)

// NewClient returns a client of the plugin at the other end of conn.
func NewClient(conn grpc.ClientConnInterface) *Client {
	return &Client{
		plugin: pb.NewPluginClient(conn), configurator: pb.NewConfiguratorClient(conn),
		source: pb.NewSourceClient(conn), keys: pb.NewKeyProviderClient(conn), conn: conn,
	}
}

// Describe implements Configurator.
func (c *Client) Describe(ctx context.Context, r DescribeRequest) (Description, error) {
	var trailer metadata.MD
	answer, err := c.plugin.Describe(ctx, &pb.DescribeRequest{
		Root: r.Root, Target: targetToPB(r.Target), RuntimeVersion: clean(r.RuntimeVersion), JsonSchema: r.JSONSchema,
	}, grpc.Trailer(&trailer))
	if err != nil {
		return Description{}, fromStatus(ctx, "Describe", err, trailer)
	}
	return receivedDescription(answer)
}

// Plan implements Configurator.
func (c *Client) Plan(ctx context.Context, r Request) (Plan, error) {
	var trailer metadata.MD
	answer, err := c.configurator.Plan(ctx, &pb.PlanRequest{
		Document: r.Document, Root: r.Root, Target: targetToPB(r.Target), StateDir: r.StateDir,
		ClaimKey: r.ClaimKey, Files: filesToPB(r.Files), ListFiles: r.ListFiles,
	}, grpc.Trailer(&trailer))
	if err != nil {
		err = fromStatus(ctx, "Plan", err, trailer)
		if e := new(Error); errors.As(err, &e) && len(e.Claims) > 0 && len(r.ClaimKey) == 0 {
			err = breach("P-34", "Plan answered with claims although the request has no key")
		}
		return Plan{}, err
	}
	return receivedPlan(answer, len(r.ClaimKey) > 0, r.ListFiles)
}

// Apply implements Configurator. A stream without Finished is ErrCrashed; other events against the protocol are Internal.
func (c *Client) Apply(ctx context.Context, r Request, limit int, send func(Event) error) (Finished, error) {
	return c.ApplyLate(ctx, r, limit, func() error { return nil }, send)
}

// ApplyLate is Apply that calls between after the headers and before the request, so that calls of between overtake it.
func (c *Client) ApplyLate(
	ctx context.Context, r Request, limit int, between func() error, send func(Event) error,
) (Finished, error) {
	if limit < 0 {
		return Finished{}, &Error{Code: CodeInternal, Message: "the limit is negative"}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var left *durationpb.Duration
	if r.TimeLeft > 0 {
		left = durationpb.New(r.TimeLeft)
	}
	headers, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, pb.Configurator_Apply_FullMethodName)
	if err != nil {
		return Finished{}, fromStatus(ctx, "Apply", err, nil)
	}
	if err := between(); err != nil {
		return Finished{}, err
	}
	stream := &grpc.GenericClientStream[pb.ApplyRequest, pb.ApplyEvent]{ClientStream: headers}
	err = stream.SendMsg(&pb.ApplyRequest{
		Document: r.Document, Root: r.Root, Target: targetToPB(r.Target), StateDir: r.StateDir,
		TimeLeft: left,
		Limit:    uint32(min(limit, 1<<31-1)), //nolint:gosec // bounded on both sides just above
	})
	if err == nil {
		err = stream.CloseSend()
	}
	if err != nil && !errors.Is(err, io.EOF) { // after EOF the answer has the status
		return Finished{}, fromStatus(ctx, "Apply", err, nil)
	}
	return receive(ctx, stream, send)
}

// Shutdown asks the plugin to end (SPEC P-3). launch.Process.Kill also waits for the end, and forces it.
func (c *Client) Shutdown(ctx context.Context) error {
	err := c.conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{})
	return fromStatus(ctx, "Shutdown", err, nil)
}

// receive reads the events of an Apply.
func receive(ctx context.Context, stream grpc.ServerStreamingClient[pb.ApplyEvent], send func(Event) error) (Finished, error) {
	var finished *Finished
	var events sequence
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Finished{}, applyError(ctx, err, stream.Trailer(), finished != nil)
		}
		if finished != nil {
			return Finished{}, breach("P-23", "Apply sent an event after finished")
		}
		event := eventFromPB(message)
		pass, err := events.take(event)
		if err != nil {
			return Finished{}, err
		}
		if f, ok := event.(Finished); ok {
			finished = &f
			event, pass = events.omitted()
		}
		if !pass {
			continue
		}
		if err := send(event); err != nil {
			return Finished{}, fmt.Errorf("handle an event: %w", err)
		}
	}
	if finished == nil {
		return Finished{}, fmt.Errorf("%w: the stream of Apply ended without finished", ErrCrashed)
	}
	return *finished, nil
}

// applyError classifies the end of a broken stream. A connection that is lost after finished is still a crash, so that the
// plugin gets no other document.
func applyError(ctx context.Context, err error, trailer metadata.MD, finished bool) error {
	err = fromStatus(ctx, "Apply", err, trailer)
	if finished && !errors.Is(err, ErrCrashed) && !errors.Is(err, context.Canceled) {
		return breach("P-23", "Apply failed the call after finished")
	}
	return err
}

// Stop implements Configurator.
func (c *Client) Stop(ctx context.Context) error {
	var trailer metadata.MD
	_, err := c.configurator.Stop(ctx, &pb.StopRequest{}, grpc.Trailer(&trailer))
	return fromStatus(ctx, "Stop", err, trailer)
}
