// Package launch starts plugins, supervises their calls and stops them.
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

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/internal/proctree"
	"github.com/machineadm/machineadm/internal/trust"
	"github.com/machineadm/machineadm/internal/version"
)

// Plugin is a running plugin.
type Plugin struct {
	pluginv1.Configurator
	Source      pluginv1.Source      // of RemoteConfig and ReportTarget
	Keys        pluginv1.KeyProvider // of EncryptedConfig
	Description pluginv1.Description
	Path        string
	SHA256      string        // of the executed file
	Stderr      func() string // returns the end of its stderr
	Kill        func()        // ends it and its processes; idempotent
}

// Options configure a Fleet.
type Options struct {
	Log *slog.Logger
	// SocketDir is a directory that only this user can enter.
	SocketDir string
	// Environment is the whole environment of every plugin.
	Environment []string
	// Inherit are descriptors that every plugin and its children inherit: the lock.
	Inherit []*os.File
	// Tree adopts orphans; KillAll ends its remaining processes.
	Tree *proctree.Tree
	// Root and Target are arguments of Describe.
	Root   string
	Target target.Target
	// Digests caches the digests of plugin files; nil caches nothing.
	Digests *Digests
	// StartTimeout bounds the start of one plugin; 0 means the default of contract/launch.
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

// killGrace bounds the orderly exit of a plugin. go-plugin waits without a limit for one that does not respond.
const killGrace = 3 * time.Second

var errEnded = errors.New("the run has ended")

type start struct {
	done   chan struct{}
	plugin *Plugin
	err    error
}

// NewFleet returns a fleet of the plugins in c.
func NewFleet(c *catalog.Catalog, o Options) *Fleet {
	return &Fleet{o: o, catalog: c, ending: make(chan struct{}), started: map[string]*start{}}
}

// Find implements run.Plugins.
func (f *Fleet) Find(binary string) (catalog.Plugin, error) { return f.catalog.Find(binary) }

// ByType implements run.Plugins.
func (f *Fleet) ByType(kind string) ([]catalog.Plugin, error) { return f.catalog.ByType(kind) }

// Start starts a plugin and calls Describe, or returns the running one. A failed start is not repeated: every call for
// the plugin returns its error.
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

// startUntilEnd starts a plugin, and gives up when KillAll is called.
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
	defer func() { _ = file.Close() }() // opened for reading only
	log := f.o.Log.With(slog.String("plugin", p.Binary))
	log.Info("plugin found and trusted", "path", p.Path, "reason", trust.Reason())
	if p.Shadows != "" {
		log.Warn("a plugin in machineadm's own directory replaces the installed one", "path", p.Path, "installed", p.Shadows)
	}
	begun := time.Now()
	digest := sync.OnceValues(func() (string, error) { return f.o.Digests.Of(p.Path, file) })
	go func() { _, _ = digest() }()    // while the plugin starts
	defer func() { _, _ = digest() }() // before the file is closed
	output := &stderr{log: log}
	program := &child{tree: f.o.Tree, command: proctree.Command{Path: p.Path, Program: file, Files: f.o.Inherit}}
	process, err := launch.Start(ctx, launch.Options{
		Program: program, Environment: f.o.Environment, SocketDir: f.o.SocketDir,
		Timeout: f.o.StartTimeout, Stderr: output,
	})
	if err != nil {
		output.Flush()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		failed, ok := errors.AsType[*launch.Error](err)
		slow := ok && failed.Clause() == launch.ClauseInTime
		err = missingInterpreter(file, f.o.Environment, err)
		return nil, &StartError{Path: p.Path, Cause: err, Stderr: output.Tail(), Slow: slow}
	}
	log.Info("plugin started", "duration", time.Since(begun).Round(time.Millisecond))
	called := calls{Configurator: process, log: log, tree: f.o.Tree}
	out := &Plugin{Configurator: called, Source: sourceCalls{process, called}, Keys: keyCalls{process, called}, Path: p.Path, Stderr: output.Tail, Kill: func() {
		hard := time.AfterFunc(killGrace, func() { _ = program.Kill() }) // ends the wait of Kill
		defer hard.Stop()
		process.Kill()
		output.Flush()
		log.Debug("plugin ended")
	}}
	if err := f.describe(ctx, out); err != nil {
		out.Kill()
		if failed, ok := errors.AsType[*StartError](err); ok {
			failed.Stderr = output.Tail() // complete after Kill
		}
		return nil, err
	}
	if out.SHA256, err = digest(); err != nil {
		out.Kill()
		return nil, fmt.Errorf("read %s: %w", p.Path, err)
	}
	return out, nil
}

func (f *Fleet) describe(ctx context.Context, p *Plugin) error {
	timeout := f.o.StartTimeout
	if timeout == 0 {
		timeout = launch.DefaultTimeout
	}
	asked, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var err error
	p.Description, err = p.Describe(asked, pluginv1.DescribeRequest{
		Root: f.o.Root, Target: f.o.Target, RuntimeVersion: version.String(),
	})
	if errors.Is(err, context.DeadlineExceeded) {
		<-asked.Done() // the plugin can see the deadline before this context ends
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case asked.Err() != nil:
		return &StartError{Path: p.Path, Cause: fmt.Errorf("the plugin did not describe itself within %s", timeout), Slow: true}
	}
	return &StartError{Path: p.Path, Cause: err}
}

// KillAll ends all plugins concurrently, with their processes, and cancels pending starts. It returns when they are gone or,
// when ctx ends first, with an error that names the remaining processes. No plugin starts afterwards.
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
