// Package launch starts plugins, keeps watch over them and ends them.
package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/internal/proctree"
	"github.com/machineadm/machineadm/internal/trust"
	"github.com/machineadm/machineadm/internal/version"
)

// Plugin is a plugin that runs.
type Plugin struct {
	pluginv1.Configurator
	Description pluginv1.Description
	Path        string
	SHA256      string        // of the file that was judged and executed
	Stderr      func() string // the end of what it wrote to its stderr
	Kill        func()        // ends it and everything that it started; idempotent
}

// Options say how a Fleet starts plugins.
type Options struct {
	Log *slog.Logger
	// SocketDir is a directory that only this user can enter.
	SocketDir string
	// Environment is the whole environment of every plugin.
	Environment []string
	// Inherit are descriptors that every plugin and its children hold: the lock.
	Inherit []*os.File
	// Tree is the tree of processes to which orphans come; KillAll ends what is left of it.
	Tree *proctree.Tree
	// Root and Target are what plugins are asked to describe themselves for.
	Root   string
	Target target.Target
	// Digests remembers what plugins' files are; nil remembers nothing.
	Digests *Digests
	// StartTimeout bounds the start of one plugin; 0 means pluginv1.DefaultStartTimeout.
	StartTimeout time.Duration
}

// Fleet starts each plugin once. It is safe for concurrent use; KillAll ends it.
type Fleet struct {
	o       Options
	catalog *catalog.Catalog

	ending  chan struct{} // closed by KillAll
	mu      sync.Mutex
	started map[string]*start
	ended   bool
}

// killGrace is how long a plugin may take to exit in order. go-plugin would wait for one that does not answer at all.
const killGrace = 3 * time.Second

var errEnded = errors.New("the run has ended")

type start struct {
	done   chan struct{}
	plugin *Plugin
	err    error
}

// NewFleet starts plugins out of c.
func NewFleet(c *catalog.Catalog, o Options) *Fleet {
	return &Fleet{o: o, catalog: c, ending: make(chan struct{}), started: map[string]*start{}}
}

// Find implements run.Plugins.
func (f *Fleet) Find(binary string) (catalog.Plugin, error) { return f.catalog.Find(binary) }

// ByType implements run.Plugins.
func (f *Fleet) ByType(kind string) ([]catalog.Plugin, error) { return f.catalog.ByType(kind) }

// Start starts a plugin and asks what it is, or returns the one that runs already. A plugin that could not be started
// is not tried again: its error stays.
func (f *Fleet) Start(ctx context.Context, p catalog.Plugin) (*Plugin, error) {
	f.mu.Lock()
	if f.ended {
		f.mu.Unlock()
		return nil, errEnded
	}
	s, known := f.started[p.Path]
	if !known {
		s = &start{done: make(chan struct{})}
		f.started[p.Path] = s
	}
	f.mu.Unlock()
	if !known {
		s.plugin, s.err = f.startUntilEnd(ctx, p)
		close(s.done)
	}
	select {
	case <-s.done:
		return s.plugin, s.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// startUntilEnd gives a start up when KillAll is called meanwhile.
func (f *Fleet) startUntilEnd(ctx context.Context, p catalog.Plugin) (*Plugin, error) {
	starting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-f.ending:
			cancel(errEnded)
		case <-starting.Done():
		}
	}()
	plugin, err := f.start(starting, p)
	if err != nil && errors.Is(context.Cause(starting), errEnded) {
		return nil, errEnded
	}
	return plugin, err
}

func (f *Fleet) start(ctx context.Context, p catalog.Plugin) (*Plugin, error) {
	file, err := f.catalog.Open(p)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read from
	log := f.o.Log.With(slog.String("plugin", p.Binary))
	log.Info("plugin found and trusted", "path", p.Path, "reason", trust.Reason())
	if p.Shadows != "" {
		log.Warn("a plugin beside machineadm itself is used instead of the installed one", "path", p.Path, "installed", p.Shadows)
	}
	begun := time.Now()
	digest := f.digest(p.Path, file)
	defer func() { _, _ = digest.wait() }() // before the file is closed
	words := &stderr{log: log}
	program := &child{tree: f.o.Tree, command: proctree.Command{Path: p.Path, Program: file, Files: f.o.Inherit}}
	process, err := pluginv1.Launch(ctx, pluginv1.LaunchOptions{
		Program: program, Environment: f.o.Environment, SocketDir: f.o.SocketDir,
		StartTimeout: f.o.StartTimeout, Stderr: words,
	})
	if err != nil {
		words.Flush()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		err = missingInterpreter(file, f.o.Environment, err)
		return nil, &StartError{Path: p.Path, Cause: err, Stderr: words.Tail()}
	}
	log.Info("plugin started", "duration", time.Since(begun).Round(time.Millisecond))
	called := calls{Configurator: contained{process, f.o.Tree}, log: log}
	out := &Plugin{Configurator: called, Path: p.Path, Stderr: words.Tail, Kill: func() {
		hard := time.AfterFunc(killGrace, func() { _ = program.Kill() }) // Kill below then finds it gone
		defer hard.Stop()
		process.Kill()
		words.Flush()
		log.Debug("plugin ended")
	}}
	if err := f.describe(ctx, out); err != nil {
		out.Kill()
		var failed *StartError
		if errors.As(err, &failed) {
			failed.Stderr = words.Tail() // only now it is read to the end
		}
		return nil, err
	}
	if out.SHA256, err = digest.wait(); err != nil {
		out.Kill()
		return nil, fmt.Errorf("read %s: %w", p.Path, err)
	}
	return out, nil
}

// reading is a digest that is being made.
type reading struct {
	done chan struct{}
	sum  string
	err  error
}

// digest reads the file while the plugin is being started.
func (f *Fleet) digest(path string, file *os.File) *reading {
	r := &reading{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.sum, r.err = f.o.Digests.Of(path, file)
	}()
	return r
}

func (r *reading) wait() (string, error) {
	<-r.done
	return r.sum, r.err
}

func (f *Fleet) describe(ctx context.Context, p *Plugin) error {
	timeout := f.o.StartTimeout
	if timeout == 0 {
		timeout = pluginv1.DefaultStartTimeout
	}
	asked, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var err error
	p.Description, err = p.Describe(asked, pluginv1.DescribeRequest{
		Root: f.o.Root, Target: f.o.Target, RuntimeVersion: version.String(),
	})
	if errors.Is(err, context.DeadlineExceeded) {
		<-asked.Done() // the deadline can pass a moment before its timer fires
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case asked.Err() != nil:
		err = fmt.Errorf("the plugin did not describe itself within %s", timeout)
	}
	return &StartError{Path: p.Path, Cause: err}
}

// KillAll ends every plugin, side by side, and all that they started, and gives up what is being started. It returns
// when they are gone, or, when ctx has ended, with an error that names what is not. No plugin starts afterwards.
func (f *Fleet) KillAll(ctx context.Context) error {
	f.mu.Lock()
	if !f.ended {
		f.ended = true
		close(f.ending)
	}
	starts := slices.Collect(maps.Values(f.started))
	f.mu.Unlock()
	var wait sync.WaitGroup
	for _, s := range starts {
		wait.Go(func() {
			<-s.done
			if s.plugin != nil {
				s.plugin.Kill()
			}
		})
	}
	gone := make(chan struct{})
	go func() {
		wait.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-ctx.Done():
	}
	return f.o.Tree.KillDescendants(ctx)
}
