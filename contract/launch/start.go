package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// DefaultTimeout limits the time from the start of a plugin to its handshake. It is that of planning a document: at first boot, when every
// processor is busy, a plugin in an interpreted language can need half of it.
const DefaultTimeout = time.Minute

// Options are the parameters of Start.
type Options struct {
	// Command is the plugin, unstarted, with path, arguments, extra files and process attributes set. Start sets its
	// environment and its standard streams. It is ended by os.Process.Kill, which does not end its child processes.
	Command *exec.Cmd
	// Program replaces Command.
	Program Program
	// Environment is the plugin's whole environment, see the function Environment.
	Environment []string
	// SocketDir is an existing directory that only this user can enter; Start makes a directory for the socket in it.
	SocketDir string
	// Timeout limits the handshake; 0 means DefaultTimeout.
	Timeout time.Duration
	// Stderr receives what the plugin writes to stderr, and to stdout after the handshake. It must not be nil and must
	// be safe for concurrent use.
	Stderr io.Writer
}

// Process is a running plugin.
type Process struct {
	*pluginv1.Client
	client *plugin.Client
	runner *processRunner
	peer   *peer
	conn   grpc.ClientConnInterface
}

// Start starts a plugin and makes the handshake. After an error no process is left running.
//
// gRPC runs over a Unix socket in a private directory; on Windows over loopback TCP with mutual TLS, because a port
// is open to every user of the machine.
func Start(ctx context.Context, o Options) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Program == nil {
		o.Program = &command{cmd: o.Command}
	}
	run, other := &processRunner{program: o.Program}, &peer{}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  Handshake(),
		VersionedPlugins: versions(nil),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		RunnerFunc: func(_ hclog.Logger, spec *exec.Cmd, dir string) (runner.Runner, error) {
			run.socketDir, run.environment = dir, slices.Concat(o.Environment, spec.Env)
			return run, nil
		},
		SkipHostEnv:      true,
		StartTimeout:     o.Timeout,
		Stderr:           o.Stderr,
		SyncStdout:       o.Stderr,
		SyncStderr:       o.Stderr,
		Logger:           hclog.NewNullLogger(), // go-plugin's log repeats the plugin's stderr, which Stderr receives
		AutoMTLS:         runtime.GOOS == "windows",
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: o.SocketDir},
		GRPCDialOptions: append(other.options(),
			grpc.WithDefaultCallOptions(
				grpc.MaxCallRecvMsgSize(pluginv1.MaxMessageBytes), grpc.MaxCallSendMsgSize(pluginv1.MaxMessageBytes)),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTime}),
		),
	})
	p := &Process{client: client, runner: run, peer: other}
	stop := context.AfterFunc(ctx, func() { _ = run.Kill(context.WithoutCancel(ctx)) }) // ends a handshake that hangs
	defer stop()
	if err := p.connect(); err != nil {
		if full := run.room(); full != nil {
			err = &Error{Cause: full}
		}
		p.Kill()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	return p, nil
}

// keepaliveTime is the interval between pings on an idle connection, and the limit of each answer. By default a gRPC
// server closes the connection of a client that pings more often than every 5 minutes.
const keepaliveTime = 5 * time.Minute

func (p *Process) connect() (err error) {
	defer func() { // go-plugin panics at an unexpected certificate in the plugin's line
		if cause := recover(); cause != nil {
			err = &Error{Cause: errCertificate}
		}
	}()
	protocol, err := p.client.Client()
	if err != nil {
		return &Error{Cause: err}
	}
	served, err := protocol.Dispense(PluginName)
	if err != nil {
		return &Error{Cause: err}
	}
	c, ok := served.(*pluginv1.Client)
	if !ok {
		return &Error{Cause: errors.New("the plugin serves another protocol")}
	}
	p.Client = c
	if g, ok := protocol.(*plugin.GRPCClient); ok {
		p.conn = g.Conn
		go p.runner.closeAfter(g.Conn)
	}
	return nil
}

// Describe implements pluginv1.Configurator. Its error is a PeerError if the socket belongs to a process of another user.
func (p *Process) Describe(ctx context.Context, r pluginv1.DescribeRequest) (pluginv1.Description, error) {
	d, err := p.Client.Describe(ctx, r)
	return d, p.peer.reason(err)
}

// Healthy asks the health service of the plugin, which a run does not.
func (p *Process) Healthy(ctx context.Context) error {
	answer, err := grpc_health_v1.NewHealthClient(p.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: plugin.GRPCServiceName})
	if err == nil && answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		err = fmt.Errorf("the status is %s", answer.GetStatus())
	}
	return err
}

// Exited reports whether the process has ended.
func (p *Process) Exited() bool { return p.client.Exited() }

// PID is the process ID; 0 before the start.
func (p *Process) PID() int { return p.runner.pid() }

// shutdownGrace limits the answer to Shutdown, and then the exit.
const shutdownGrace = 2 * time.Second

// Kill ends the plugin: it sends Shutdown, and SIGKILL if the plugin does not answer within 2 s or does not exit within
// another 2 s. It returns when the process has ended and its stderr is read to the end. It may be called more than once.
func (p *Process) Kill() {
	// go-plugin itself waits for the answer without a limit.
	overdue := time.AfterFunc(shutdownGrace, func() { _ = p.runner.Kill(context.Background()) })
	defer overdue.Stop()
	p.client.Kill()
}
