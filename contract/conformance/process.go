package conformance

import (
	"context"
	"os/exec"
	"runtime"
	"slices"
	"sync"

	"github.com/machineadm/machineadm/contract/launch"
)

// usualUmask is the umask of plugins, whatever umask the kit has.
const usualUmask = 0o022

// plugin is a plugin process.
type plugin struct {
	*launch.Process
	stderr *output
	// role is the type of plugin that the case is for.
	role role
	// home is its home and working directory.
	home string
	// shared is false for a process with an unusual umask.
	shared bool
	// release frees the thread that started the process, which must have ended.
	release func()
	ended   sync.Once
}

// startPlugin starts a plugin by its command with this home directory; o has the directory of its socket and the limit.
func startPlugin(ctx context.Context, argv []string, umask int, o launch.Options, home string) (*plugin, error) {
	stderr := &output{}
	o.Command = exec.Command(argv[0], argv[1:]...) //nolint:gosec,noctx // the process is ended by end or kill
	o.Command.Dir, o.Stderr, o.Environment = home, stderr, environment(home)
	process, release, err := startProcess(ctx, umask, o)
	if err != nil {
		return nil, &crash{cause: err, output: stderr.tail(), atStart: true}
	}
	return &plugin{Process: process, stderr: stderr, home: home, shared: umask == usualUmask, release: release}, nil
}

// end asks the plugin to exit and kills the processes that it leaves. It may be called more than once.
func (p *plugin) end() {
	p.ended.Do(func() {
		p.shared = false
		left := family(p.PID())
		p.Kill()
		left.kill()
		p.release()
	})
}

// kill sends SIGKILL to the plugin and its descendants.
func (p *plugin) kill() {
	family(p.PID()).kill()
	p.end()
}

// crash is the unexpected end of a plugin.
type crash struct {
	cause   error
	output  string // the last of it
	atStart bool   // before the handshake
}

// Error returns the cause and the last output.
func (c *crash) Error() string {
	if c.output == "" {
		return c.cause.Error()
	}
	return c.cause.Error() + "; its last output: " + c.output
}

// Unwrap returns the cause.
func (c *crash) Unwrap() error { return c.cause }

// output keeps what a plugin writes to stderr.
type output struct {
	mu   sync.Mutex
	text []byte
}

const (
	keptOutput  = 16 << 20 // more than a plugin writes for one case, so that no secret in it is missed
	shownOutput = 400
)

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p[:min(len(p), keptOutput-len(o.text))]...)
	return len(p), nil
}

func (o *output) all() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.text)
}

func (o *output) tail() string {
	text := o.all()
	return string(text[max(0, len(text)-shownOutput):])
}

// environment returns the environment of a plugin with this home, without the variables of the handshake.
func environment(home string) []string {
	return launch.Environment(runtime.GOOS, func(name string) (string, bool) { return home, name == "HOME" })
}
