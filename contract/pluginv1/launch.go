package pluginv1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// DefaultStartTimeout is how long a plugin may take from its start to its handshake.
const DefaultStartTimeout = 10 * time.Second

// LaunchOptions say how a plugin process is started.
type LaunchOptions struct {
	// Command is the plugin, unstarted, with path, arguments, extra files and process attributes set. Its environment
	// and its standard streams are Launch's. It is ended by os.Process.Kill, which spares what it has started itself.
	Command *exec.Cmd
	// Program starts and ends the plugin instead of Command.
	Program Program
	// Environment is the plugin's whole environment, see Environment.
	Environment []string
	// SocketDir is an existing directory that only this user can enter; the socket's own directory is made in it.
	SocketDir string
	// StartTimeout bounds the handshake; 0 means DefaultStartTimeout.
	StartTimeout time.Duration
	// Stderr takes what the plugin writes to its stderr, and to stdout after the handshake. It must not be nil and
	// must be safe for concurrent use.
	Stderr io.Writer
}

// Process is a plugin that runs.
type Process struct {
	*Client
	client *plugin.Client
	runner *processRunner
	peer   *peer
}

// Launch starts a plugin and shakes hands with it. On an error nothing of it is left running.
//
// gRPC runs over a Unix socket in a private directory; on Windows over loopback TCP with mutual TLS, because a port
// is open to every user of the machine.
func Launch(ctx context.Context, o LaunchOptions) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = DefaultStartTimeout
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
		StartTimeout:     o.StartTimeout,
		Stderr:           o.Stderr,
		SyncStdout:       o.Stderr,
		SyncStderr:       o.Stderr,
		Logger:           hclog.NewNullLogger(), // the host reads stderr itself; go-plugin's own log repeats the plugin's words
		AutoMTLS:         runtime.GOOS == "windows",
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: o.SocketDir},
		GRPCDialOptions: append(other.options(),
			grpc.WithDefaultCallOptions(
				grpc.MaxCallRecvMsgSize(MaxMessageBytes), grpc.MaxCallSendMsgSize(MaxMessageBytes)),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTime}),
		),
	})
	p := &Process{client: client, runner: run, peer: other}
	stop := context.AfterFunc(ctx, func() { _ = run.Kill(context.WithoutCancel(ctx)) }) // ends a handshake that hangs
	defer stop()
	if err := p.connect(); err != nil {
		if full := run.room(); full != nil {
			err = &LaunchError{Cause: full}
		}
		p.Kill()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	return p, nil
}

// keepaliveTime is how long a silent connection goes unasked, and how long an answer may take. gRPC lets a client ask
// at most every 5 minutes unless the server allows more; a shorter one would end a healthy connection.
const keepaliveTime = 5 * time.Minute

func (p *Process) connect() (err error) {
	defer func() { // go-plugin panics at a line that offers a certificate nobody asked for
		if cause := recover(); cause != nil {
			err = &LaunchError{Cause: errors.New("the plugin's handshake cannot be understood")}
		}
	}()
	protocol, err := p.client.Client()
	if err != nil {
		return &LaunchError{Cause: err}
	}
	served, err := protocol.Dispense(PluginName)
	if err != nil {
		return &LaunchError{Cause: err}
	}
	c, ok := served.(*Client)
	if !ok {
		return &LaunchError{Cause: errors.New("the plugin serves another protocol")}
	}
	p.Client = c
	return nil
}

// LaunchError says that a plugin could not be started or did not shake hands.
type LaunchError struct{ Cause error }

// Error says what a person can do with: go-plugin's advice about recompiling is meant for authors.
func (e *LaunchError) Error() string {
	text := e.Cause.Error()
	switch {
	case strings.Contains(text, "timeout while waiting for plugin to start"):
		return "the plugin did not shake hands in time"
	case strings.Contains(text, "incompatible API version"), strings.Contains(text, "incompatible core API version"):
		return fmt.Sprintf("the plugin speaks another version of the protocol (this host speaks version %d)", ProtocolVersion)
	case strings.Contains(text, "unsupported plugin protocol"):
		return "the plugin does not speak gRPC"
	case strings.Contains(text, "Failed to read any lines"), strings.Contains(text, "plugin exited before"):
		return "the plugin ended before it shook hands"
	case strings.Contains(text, "Unrecognized remote plugin message"):
		return "the plugin wrote something else than a handshake to its standard output"
	default:
		return "the plugin could not be started: " + text
	}
}

// Unwrap is the cause.
func (e *LaunchError) Unwrap() error { return e.Cause }

// Describe implements Configurator. It is a PeerError where another user's process has taken the plugin's place.
func (p *Process) Describe(ctx context.Context, r DescribeRequest) (Description, error) {
	d, err := p.Client.Describe(ctx, r)
	return d, p.peer.reason(err)
}

// Exited says whether the process is gone.
func (p *Process) Exited() bool { return p.client.Exited() }

// PID is the process ID of what was started; 0 before the start.
func (p *Process) PID() int { return p.runner.pid() }

// shutdownGrace is how long a plugin may take to answer Shutdown, and then again to exit.
const shutdownGrace = 2 * time.Second

// Kill ends the plugin: it is asked to exit, and killed when it does not answer within 2 s or not exit within another
// 2 s. It returns when the process is gone and its stderr is read to the end. It may be called more than once.
func (p *Process) Kill() {
	// go-plugin itself waits for the answer for ever.
	overdue := time.AfterFunc(shutdownGrace, func() { _ = p.runner.Kill(context.Background()) })
	defer overdue.Stop()
	p.client.Kill()
}

// Environment is the whole environment that a plugin gets: a fixed PATH, HOME, LANG, and the proxies of lookup
// without the user part of their URLs, since credentials do not belong into an environment.
func Environment(goos string, lookup func(string) (string, bool)) []string {
	env := []string{"LANG=C.UTF-8"}
	if goos == "windows" {
		for _, name := range []string{"SystemRoot", "SystemDrive", "windir", "ProgramData", "ProgramFiles", "TEMP", "TMP", "PATH"} {
			if value, ok := lookup(name); ok {
				env = append(env, name+"="+value)
			}
		}
	} else {
		home := "/root"
		if value, ok := lookup("HOME"); ok && value != "" {
			home = value
		}
		env = append(env, "HOME="+home, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"} {
		if value, ok := lookup(name); ok {
			env = append(env, name+"="+withoutUser(value))
		}
	}
	return env
}

// withoutUser drops the user part of a proxy's URL, also of one that does not parse.
func withoutUser(proxy string) string {
	u, err := url.Parse(proxy)
	if err == nil && u.User != nil {
		u.User = nil
		return u.String()
	}
	if at := strings.LastIndex(proxy, "@"); at >= 0 {
		scheme, _, found := strings.Cut(proxy, "://")
		if !found || len(scheme) > at {
			return proxy[at+1:]
		}
		return scheme + "://" + proxy[at+1:]
	}
	return proxy
}
