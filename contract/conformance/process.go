package conformance

import (
	"context"
	"os/exec"
	"slices"
	"sync"

	"github.com/machineadm/machineadm/contract/launch"
)

// usualUmask is what plugins are started with, whatever the judge's own is.
const usualUmask = 0o022

// plugin is a plugin process.
type plugin struct {
	*launch.Process
	stderr *words
	// over lets go of what the process hangs on; the process must be gone.
	over  func()
	ended sync.Once
}

// startPlugin starts the binary with a working directory and a home in which a stray write is seen.
func startPlugin(ctx context.Context, binary, sockets, home string, umask int) (*plugin, error) {
	said := &words{}
	command := exec.Command(binary) //nolint:noctx // the process is ended by Kill, or killed at a chosen moment
	command.Dir = home
	process, over, err := startProcess(ctx, umask, launch.Options{
		Command: command, SocketDir: sockets, Stderr: said,
		Environment: environment(home),
	})
	if err != nil {
		return nil, &crash{cause: err, words: said.tail(), stillborn: true}
	}
	return &plugin{Process: process, stderr: said, over: over}, nil
}

// end asks the plugin to exit and ends what is left of it. It may be called more than once.
func (p *plugin) end() {
	p.ended.Do(func() {
		left := family(p.PID())
		p.Kill()
		left.kill()
		p.over()
	})
}

// kill is SIGKILL to the plugin and all that it started, at once.
func (p *plugin) kill() {
	family(p.PID()).kill()
	p.end()
}

// crash says that a plugin ended where it must not, with its last words.
type crash struct {
	cause error
	words string
	// stillborn says that it never came to a call.
	stillborn bool
}

// Error is the cause and the last words.
func (c *crash) Error() string {
	if c.words == "" {
		return c.cause.Error()
	}
	return c.cause.Error() + "; its last words: " + c.words
}

// Unwrap is the cause.
func (c *crash) Unwrap() error { return c.cause }

// words is what a plugin writes to its stderr.
type words struct {
	mu   sync.Mutex
	text []byte
}

const (
	keptWords = 16 << 20 // more than a plugin says in one check; a canary must not be lost
	lastWords = 400
)

// Write implements io.Writer.
func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p[:min(len(p), keptWords-len(w.text))]...)
	return len(p), nil
}

func (w *words) all() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.text)
}

func (w *words) tail() string {
	text := w.all()
	return string(text[max(0, len(text)-lastWords):])
}
