// Package process starts plugins, calls them, watches what they write, and ends them with their descendants.
package process

import (
	"context"
	"os/exec"
	"runtime"
	"slices"
	"sync"

	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/launch"
)

// UsualUmask is the umask of plugins, whatever umask the kit has.
const UsualUmask = 0o022

// Plugin is a plugin process.
type Plugin struct {
	*launch.Process
	Stderr *output
	// Role is the type of plugin that the case is for.
	Role testcase.Role
	// Home is its home and working directory.
	Home string
	// Shared is false for a process with an unusual umask.
	Shared bool
	// release frees the thread that started the process, which must have ended.
	release func()
	ended   sync.Once
}

// StartPlugin starts a plugin by its command with this home directory; o has the directory of its socket and the limit.
func StartPlugin(ctx context.Context, argv []string, umask int, o launch.Options, home string) (*Plugin, error) {
	stderr := &output{}
	o.Command = exec.Command(argv[0], argv[1:]...) //nolint:gosec,noctx // the process is ended by end or kill
	o.Command.Dir, o.Stderr, o.Environment = home, stderr, Environment(home)
	process, release, err := startProcess(ctx, umask, o)
	if err != nil {
		return nil, &CrashError{cause: err, output: stderr.tail(), AtStart: true}
	}
	return &Plugin{Process: process, Stderr: stderr, Home: home, Shared: umask == UsualUmask, release: release}, nil
}

// End asks the plugin to exit and kills the processes that it leaves. It may be called more than once.
func (p *Plugin) End() {
	p.ended.Do(func() {
		p.Shared = false
		left := Family(p.PID())
		p.Kill()
		left.Kill()
		p.release()
	})
}

// KillFamily sends SIGKILL to the plugin and its descendants.
func (p *Plugin) KillFamily() {
	Family(p.PID()).Kill()
	p.End()
}

// CrashError is the unexpected end of a plugin.
type CrashError struct {
	cause   error
	output  string // the last of it
	AtStart bool   // before the handshake
}

// Error returns the cause and the last output.
func (c *CrashError) Error() string {
	if c.output == "" {
		return c.cause.Error()
	}
	return c.cause.Error() + "; its last output: " + c.output
}

// Unwrap returns the cause.
func (c *CrashError) Unwrap() error { return c.cause }

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

func (o *output) All() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.text)
}

func (o *output) tail() string {
	text := o.All()
	return string(text[max(0, len(text)-shownOutput):])
}

// Environment returns the environment of a plugin with this home, without the variables of the handshake.
func Environment(home string) []string {
	return launch.Environment(runtime.GOOS, func(name string) (string, bool) { return home, name == "HOME" })
}
