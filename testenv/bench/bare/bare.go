// Package bare is the least that a host and a plugin of hashicorp/go-plugin can be that speak machineadm's protocol: one
// process each, without containment, trust, documents, reports, or a file that survives a power cut. What machineadm costs is
// measured against it, in the same run, on the same machine.
//
// Both sides have go-plugin's defaults, but for a logger that says nothing. TLS is off, as it is between machineadm and
// its plugins on Linux.
package bare

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

const name = "bare"

func handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "MACHINEADM_BENCH_COOKIE", MagicCookieValue: name}
}

// Serve is the plugin: it writes the files that a document names.
func Serve() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: handshake(), Plugins: plugin.PluginSet{name: &adapter{}}, GRPCServer: plugin.DefaultGRPCServer,
		Logger: hclog.NewNullLogger(),
	})
}

// Host has started a plugin.
type Host struct {
	client *plugin.Client
	calls  *calls
	cmd    *exec.Cmd
}

// Start starts the plugin at path and asks what it is.
func Start(ctx context.Context, path string) (*Host, error) {
	h := &Host{cmd: exec.Command(path)} //nolint:noctx // Kill ends it in order
	h.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: handshake(), Plugins: plugin.PluginSet{name: &adapter{}}, Cmd: h.cmd,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, Logger: hclog.NewNullLogger(),
	})
	err := h.connect(ctx)
	if err != nil {
		h.Kill()
		return nil, err
	}
	return h, nil
}

func (h *Host) connect(ctx context.Context) error {
	protocol, err := h.client.Client()
	if err != nil {
		return err
	}
	served, err := protocol.Dispense(name)
	if err != nil {
		return err
	}
	c, ok := served.(*calls)
	if !ok {
		return errors.New("the plugin serves something else")
	}
	h.calls = c
	_, err = c.Describe(ctx, &pb.DescribeRequest{Target: target()})
	return err
}

// Plan plans a document.
func (h *Host) Plan(ctx context.Context, document []byte, root string) error {
	_, err := h.calls.Plan(ctx, &pb.PlanRequest{Document: document, Root: root, Target: target()})
	return err
}

// Apply applies a document.
func (h *Host) Apply(ctx context.Context, document []byte, root string) error {
	stream, err := h.calls.Apply(ctx, &pb.ApplyRequest{Document: document, Root: root, Target: target()})
	if err != nil {
		return err
	}
	for {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// PID is the plugin's process ID.
func (h *Host) PID() int { return h.cmd.Process.Pid }

// Kill ends the plugin.
func (h *Host) Kill() { h.client.Kill() }

func target() *pb.Target {
	return &pb.Target{Os: "linux", Architecture: "amd64", Distribution: "debian", Version: "12", Name: "Debian GNU/Linux 12 (bookworm)"}
}

type calls struct {
	pb.PluginClient
	pb.ConfiguratorClient
}

type adapter struct{ plugin.NetRPCUnsupportedPlugin }

// GRPCServer implements plugin.GRPCPlugin.
func (*adapter) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	pb.RegisterPluginServer(s, &server{})
	pb.RegisterConfiguratorServer(s, &server{})
	return nil
}

// GRPCClient implements plugin.GRPCPlugin.
func (*adapter) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, connection *grpc.ClientConn) (any, error) {
	return &calls{pb.NewPluginClient(connection), pb.NewConfiguratorClient(connection)}, nil
}

type server struct {
	pb.UnimplementedPluginServer
	pb.UnimplementedConfiguratorServer
}

// Describe implements pb.PluginServer.
func (*server) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return &pb.DescribeResponse{
		Name: name, Version: "1.0.0", Kinds: []*pb.Kind{{ApiVersion: "bench.example.com/v1", Kind: "Files", Phase: pb.Phase_PHASE_PREPARATION}},
		Fitness: pb.Fitness_FITNESS_ACTIVE,
	}, nil
}

// file is a file of a document.
type file struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func decode(document []byte) ([]file, error) {
	var d struct {
		Spec struct {
			Files []file `json:"files"`
		} `json:"spec"`
	}
	err := json.Unmarshal(document, &d)
	return d.Spec.Files, err
}

func change(f file) *pb.Change {
	return &pb.Change{Id: "file:" + f.Path, Summary: "create " + f.Path, Diff: f.Content}
}

// Plan implements pb.ConfiguratorServer.
func (*server) Plan(_ context.Context, r *pb.PlanRequest) (*pb.PlanResponse, error) {
	files, err := decode(r.GetDocument())
	if err != nil {
		return nil, err
	}
	out := &pb.PlanResponse{}
	for _, f := range files {
		now, err := os.ReadFile(filepath.Join(r.GetRoot(), f.Path))
		if err != nil || string(now) != f.Content {
			out.Changes = append(out.Changes, change(f))
		}
	}
	return out, nil
}

// Apply implements pb.ConfiguratorServer.
func (*server) Apply(r *pb.ApplyRequest, stream grpc.ServerStreamingServer[pb.ApplyEvent]) error {
	files, err := decode(r.GetDocument())
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := stream.Send(&pb.ApplyEvent{Event: &pb.ApplyEvent_Started{Started: &pb.Started{Change: change(f)}}}); err != nil {
			return err
		}
		path := filepath.Join(r.GetRoot(), f.Path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(f.Content), 0o644)); err != nil { //nolint:gosec // as the product's
			return err
		}
		if err := stream.Send(&pb.ApplyEvent{Event: &pb.ApplyEvent_Changed{Changed: &pb.Changed{Id: "file:" + f.Path}}}); err != nil {
			return err
		}
	}
	return stream.Send(&pb.ApplyEvent{Event: &pb.ApplyEvent_Finished{Finished: &pb.Finished{}}})
}
