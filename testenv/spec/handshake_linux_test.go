package spec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

// asPlugin as the first argument makes the test binary a plugin that was written by SPEC.md alone: gRPC and no
// go-plugin. What it writes to its standard output is the second argument, in which SOCKET is replaced by its address.
const asPlugin = "plugin-by-hand"

// withoutShutdown as the third argument leaves out GRPCController.
const withoutShutdown = "without-shutdown"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asPlugin {
		if err := servePlugin(os.Args[2], len(os.Args) > 3); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err) // it ends with 1 in any case
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func servePlugin(output string, deaf bool) error {
	if os.Getenv("MACHINEADM_PLUGIN_COOKIE") == "" {
		return errors.New("this is a plugin")
	}
	socket := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "socket")
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	pb.RegisterPluginServer(server, described{})
	if !deaf {
		server.RegisterService(controller(server), nil)
	}
	if _, err := io.WriteString(os.Stdout, strings.ReplaceAll(output, "SOCKET", socket)); err != nil {
		return err
	}
	if err := server.Serve(listener); err != nil {
		return err
	}
	_, err = io.WriteString(os.Stderr, "ended by itself\n")
	return err
}

type described struct{ pb.UnimplementedPluginServer }

func (described) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return &pb.DescribeResponse{Name: "by-hand", Version: "1"}, nil
}

// controller is go-plugin's GRPCController. An empty message of any name has the same form.
func controller(server *grpc.Server) *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: "plugin.GRPCController", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "Shutdown",
			Handler: func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
				go server.GracefulStop() // once this call is answered
				return &emptypb.Empty{}, nil
			},
		}},
	}
}

// stderr is what a plugin wrote to its standard error.
type stderr struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (s *stderr) Write(p []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.Write(p)
}

func (s *stderr) String() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.String()
}

// start launches the plugin as the runtime does.
func start(t *testing.T, args ...string) (*launch.Process, *stderr, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sockets, err := os.MkdirTemp("", "s") //nolint:usetesting // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(sockets); err != nil {
			t.Error(err)
		}
	})
	words := &stderr{}
	p, err := launch.Start(t.Context(), launch.Options{
		Command: exec.Command(self, append([]string{asPlugin}, args...)...), SocketDir: sockets, Stderr: words,
		Environment: launch.Environment(runtime.GOOS, os.LookupEnv),
	})
	return p, words, err
}

// TestHandshakeByHand: the line of SPEC.md suffices, and a forbidden one is refused.
func TestHandshakeByHand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ output, refused string }{
		"five fields":                      {output: "1|1|unix|SOCKET|grpc\n"},
		"six fields, the last one empty":   {output: "1|1|unix|SOCKET|grpc|\n"},
		"seven fields":                     {output: "1|1|unix|SOCKET|grpc||true\n"},
		"words after the line":             {output: "1|1|unix|SOCKET|grpc|\nand more\n" + strings.Repeat("and more\n", 10000)},
		"three fields":                     {output: "1|1|unix\n", refused: "is no handshake"},
		"words before the line":            {output: "hello\n1|1|unix|SOCKET|grpc|\n", refused: "is no handshake"},
		"not gRPC":                         {output: "1|1|unix|SOCKET|netrpc|\n", refused: "does not use gRPC"},
		"four fields":                      {output: "1|1|unix|SOCKET\n", refused: "does not use gRPC"},
		"another protocol version":         {output: "1|2|unix|SOCKET|grpc|\n", refused: "another version of the protocol"},
		"another version of the handshake": {output: "2|1|unix|SOCKET|grpc|\n", refused: "another version of the protocol"},
		"another kind of address":          {output: "1|1|vsock|SOCKET|grpc|\n", refused: "listens outside of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, words, err := start(t, c.output)
			if c.refused != "" {
				if launch, ok := errors.AsType[*launch.Error](err); !ok || !strings.Contains(launch.Error(), c.refused) {
					t.Errorf("error %v, want one with %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v; the plugin said: %s", err, words)
			}
			if d, err := p.Describe(t.Context(), pluginv1.DescribeRequest{}); err != nil || d.Name != "by-hand" {
				t.Errorf("described as %+v, %v", d, err)
			}
			p.Kill()
			if !p.Exited() || words.String() != "ended by itself\n" {
				t.Errorf("the plugin was not left to end by itself; it said: %s", words)
			}
		})
	}
}

func TestPluginWithoutShutdownIsKilled(t *testing.T) {
	t.Parallel()
	p, words, err := start(t, "1|1|unix|SOCKET|grpc|\n", withoutShutdown)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := p.Describe(t.Context(), pluginv1.DescribeRequest{}); err != nil || d.Name != "by-hand" {
		t.Errorf("described as %+v, %v", d, err)
	}
	p.Kill()
	if !p.Exited() || words.String() != "" {
		t.Errorf("exited: %v; it said: %s", p.Exited(), words)
	}
}
