package pluginv1

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

// Client speaks to a plugin over a connection. It is safe for concurrent use.
//
// Its errors are *Error, ErrCrashed, or the context's own error.
type Client struct {
	plugin       pb.PluginClient
	configurator pb.ConfiguratorClient
}

var _ Configurator = (*Client)(nil)

// NewClient speaks to the plugin at the other end of conn.
func NewClient(conn grpc.ClientConnInterface) *Client {
	return &Client{plugin: pb.NewPluginClient(conn), configurator: pb.NewConfiguratorClient(conn)}
}

// Describe implements Configurator.
func (c *Client) Describe(ctx context.Context, r DescribeRequest) (Description, error) {
	answer, err := c.plugin.Describe(ctx, &pb.DescribeRequest{
		Root: r.Root, Target: targetToPB(r.Target), RuntimeVersion: clean(r.RuntimeVersion), JsonSchema: r.JSONSchema,
	})
	if err != nil {
		return Description{}, fromStatus(ctx, err)
	}
	return descriptionFromPB(answer), nil
}

// Plan implements Configurator.
func (c *Client) Plan(ctx context.Context, r Request) (Plan, error) {
	answer, err := c.configurator.Plan(ctx, &pb.PlanRequest{
		Document: r.Document, Root: r.Root, Target: targetToPB(r.Target), StateDir: r.StateDir,
		ClaimKey: r.ClaimKey,
	})
	if err != nil {
		return Plan{}, fromStatus(ctx, err)
	}
	return planFromPB(answer), nil
}

// Apply implements Configurator. A stream that breaks the protocol (no Finished, two of them, an event after it) is an
// Internal error, except that a stream which simply ends is ErrCrashed.
func (c *Client) Apply(ctx context.Context, r Request, limit int, send func(Event) error) (Finished, error) {
	if limit < 0 {
		return Finished{}, &Error{Code: CodeInternal, Message: "the limit is negative"}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var left *durationpb.Duration
	if r.TimeLeft > 0 {
		left = durationpb.New(r.TimeLeft)
	}
	stream, err := c.configurator.Apply(ctx, &pb.ApplyRequest{
		Document: r.Document, Root: r.Root, Target: targetToPB(r.Target), StateDir: r.StateDir,
		TimeLeft: left,
		Limit:    uint32(min(limit, 1<<31-1)), //nolint:gosec // bounded on both sides just above
	})
	if err != nil {
		return Finished{}, fromStatus(ctx, err)
	}
	var finished *Finished
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Finished{}, applyError(ctx, err, finished != nil)
		}
		event := eventFromPB(message)
		if finished != nil {
			return Finished{}, &Error{Code: CodeInternal, Message: "the plugin sent an event after finished"}
		}
		if f, ok := event.(Finished); ok {
			finished = &f
			continue
		}
		if event == nil {
			continue
		}
		if err := send(event); err != nil {
			return Finished{}, fmt.Errorf("take an event: %w", err)
		}
	}
	if finished == nil {
		return Finished{}, fmt.Errorf("%w: the stream of Apply ended without finished", ErrCrashed)
	}
	return *finished, nil
}

// applyError judges a broken stream: after finished, losing the connection changes nothing of what was said, but a
// plugin that fails then is not trusted with the next document.
func applyError(ctx context.Context, err error, finished bool) error {
	err = fromStatus(ctx, err)
	if finished && !errors.Is(err, ErrCrashed) && !errors.Is(err, context.Canceled) {
		return &Error{Code: CodeInternal, Message: "the plugin failed the call after finished"}
	}
	return err
}

// Stop implements Configurator.
func (c *Client) Stop(ctx context.Context) error {
	_, err := c.configurator.Stop(ctx, &pb.StopRequest{})
	return fromStatus(ctx, err)
}
