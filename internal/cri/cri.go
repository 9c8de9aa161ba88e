// Package cri speaks the Container Runtime Interface, version 1: what the kubelet asks of a container runtime.
package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

var (
	// ErrDown reports that no process listens on the endpoint, or that the connection broke.
	ErrDown = errors.New("the container runtime is not up")
	// ErrNotServed says that a daemon listens, but does not serve the interface: its CRI part is turned off or did not start.
	ErrNotServed = errors.New("the daemon does not serve the Container Runtime Interface")
)

// receiveLimit is the kubelet's. gRPC's own is 4 MiB.
const receiveLimit = 16 << 20

// Client is a connection to one runtime. It follows a restart of the daemon: a call fails while it is down, a later one
// connects again. Errors begin with the name of the call and carry what the daemon answered, as a status of gRPC.
type Client struct{ conn *grpc.ClientConn }

// Dial returns a client over the connections that open makes; ErrDown if no process listens on the endpoint. The caller
// checks the owner of the socket.
func Dial(ctx context.Context, open func(context.Context) (net.Conn, error)) (*Client, error) {
	// gRPC connects with the first call. This reports a runtime that is down at once, with the error of the system.
	first, err := open(ctx)
	if err == nil {
		err = first.Close()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("cri: %w: %w", ErrDown, err)
	case err != nil:
		return nil, fmt.Errorf("cri: %w", err)
	}
	conn, err := grpc.NewClient("passthrough:///cri",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return open(ctx) }),
		grpc.WithAuthority("localhost"), // as gRPC itself says of a unix socket
		grpc.WithUnaryInterceptor(explain),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(receiveLimit), grpc.ForceCodec(codec{})),
	)
	if err != nil {
		return nil, fmt.Errorf("cri: %w", err)
	}
	return &Client{conn: conn}, nil
}

// Close ends the connection and every call on it.
func (c *Client) Close() error { return c.conn.Close() }

// call sends a request to a method, such as RuntimeService/Status.
func (c *Client) call(ctx context.Context, method string, request message) (answer message, err error) {
	err = c.conn.Invoke(ctx, "/runtime.v1."+method, &request, &answer)
	return answer, err
}

// Version is who answers.
type Version struct {
	Runtime string // such as containerd
	Version string // of the running daemon, as it reports it
	API     string // of the interface, such as v1
}

// Version asks the daemon that runs; the program on the disk may be another one.
func (c *Client) Version(ctx context.Context) (Version, error) {
	r, err := c.call(ctx, "RuntimeService/Version", nil)
	if err != nil {
		return Version{}, err
	}
	return Version{Runtime: r.text(2), Version: r.text(3), API: r.text(4)}, nil
}

// explain gives an error the name of its call and says what it means. gRPC has statuses of its own for the end of a context.
func explain(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	var header, trailer metadata.MD
	err := call(ctx, method, request, reply, conn, append(options, grpc.Header(&header), grpc.Trailer(&trailer))...)
	if err == nil {
		return nil
	}
	meaning := error(nil)
	switch status.Code(err) {
	case codes.Unavailable:
		// A runtime says Unavailable also of others, such as a registry. gRPC returns it when no server answers.
		if len(header) == 0 && len(trailer) == 0 {
			meaning = ErrDown
		}
	case codes.Unimplemented:
		meaning = ErrNotServed
	case codes.DeadlineExceeded:
		// The daemon has the deadline too and may report it a moment before the context does.
		if _, ours := ctx.Deadline(); ours {
			meaning = context.DeadlineExceeded
		}
	case codes.Canceled:
		meaning = ctx.Err()
	}
	if meaning == nil {
		return fmt.Errorf("cri %s: %w", path.Base(method), err)
	}
	return fmt.Errorf("cri %s: %w: %w", path.Base(method), meaning, err)
}
