// Package plugins runs source plugins and key providers for the manager: one process for each provider, which starts with its first call, starts again after
// its end, and ends with the manager. A process gets no secret by its environment or its arguments.
package plugins

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/internal/proctree"
)

// Options are the parameters of New.
type Options struct {
	// Directory has the plugins.
	Directory string
	// Providers are those that may be called.
	Providers []string
	// Log gets the lines of the plugins, and at its debug level each call.
	Log *slog.Logger
}

// Plugins are the plugins of a manager. Its methods may be called concurrently.
type Plugins struct {
	o       Options
	catalog *catalog.Catalog
	// limit bounds a call, and the sign of life after it.
	limit time.Duration

	mu       sync.Mutex
	byBinary map[string]*plugin
	starter  *starter // at the first call
	ended    bool
}

// New returns the plugins of a directory. It starts none.
func New(o Options) (*Plugins, error) {
	c, err := catalog.New(catalog.Options{First: []string{o.Directory}})
	if err != nil {
		return nil, err
	}
	o.Log = slog.New(quiet{o.Log.Handler()})
	return &Plugins{o: o, catalog: c, limit: defaultLimit, byBinary: map[string]*plugin{}}, nil
}

// Source calls a source plugin that can store. The call is repeatable: it is made once more if the process had ended since the call before. An
// error is an *Error.
func (p *Plugins) Source(ctx context.Context, namespace, provider string, call func(context.Context, pluginv1.Source) error) error {
	return p.call(ctx, namespace, wanted{"RemoteConfig", provider, pluginv1.CapabilityStore, "spec.source"}, func(ctx context.Context, running *launch.Plugin) error {
		return call(ctx, running.Source)
	})
}

// Keys calls a key provider that can make passphrases, as Source calls a source.
func (p *Plugins) Keys(ctx context.Context, namespace, provider string, call func(context.Context, pluginv1.KeyProvider) error) error {
	return p.call(ctx, namespace, wanted{"EncryptedConfig", provider, pluginv1.CapabilityNewPassphrase, "spec.encryption"}, func(ctx context.Context, running *launch.Plugin) error {
		return call(ctx, running.Keys)
	})
}

// wanted is a plugin with the capability that a call needs, and the field of the storage that names it.
type wanted struct{ kind, provider, capability, field string }

func (p *Plugins) call(ctx context.Context, namespace string, of wanted, call func(context.Context, *launch.Plugin) error) error {
	if !slices.Contains(p.o.Providers, of.provider) {
		return &Error{
			Code: report.CodeNoPlugin, Message: "the manager has no plugin for the provider " + of.provider,
			Hint: "start the manager with --storage-providers=" + of.provider + ", with clusterctl in MACHINEADM_STORAGE_PROVIDERS, or use another provider",
		}
	}
	one := p.plugin(naming.Binary(of.kind, of.provider))
	if !one.enter(ctx, namespace) {
		return &Error{Code: pluginv1.CodeRetry.String(), Message: "other calls of the namespace or of the provider are in work", After: Busy}
	}
	defer one.leave(namespace)
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	for {
		running, fresh, err := one.running(ctx, p.start)
		if err != nil {
			return failure(ctx, err, of.field)
		}
		if !slices.Contains(running.Description.Capabilities, of.capability) {
			return failure(ctx, &pluginv1.Error{
				Code: pluginv1.CodeUnsupported, Message: "the plugin " + running.Description.Name + " does not have the capability " + of.capability,
				Hint: "use another provider, or a later version of the plugin",
			}, of.field)
		}
		err = call(ctx, running)
		switch {
		case errors.Is(err, pluginv1.ErrCrashed):
			one.end(running)
			if !fresh {
				continue
			}
		case isOver(ctx, err) && !p.answers(ctx, running):
			one.end(running)
		}
		if err != nil {
			return failure(ctx, err, of.field)
		}
		return nil
	}
}

// answers says whether a plugin whose call has used up its time does anything at all. A store that is slow is no fault of the process,
// which others use, too.
func (p *Plugins) answers(ctx context.Context, running *launch.Plugin) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.limit/3)
	defer cancel()
	_, err := running.Describe(ctx, pluginv1.DescribeRequest{Target: Here()})
	return err == nil
}

// Here is the machine of the manager, as far as plugins need it.
func Here() target.Target { return target.Target{OS: runtime.GOOS, Architecture: runtime.GOARCH} }

func (p *Plugins) plugin(binary string) *plugin {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.byBinary[binary]
	if one == nil {
		one = &plugin{binary: binary, lock: make(chan struct{}, 1), calls: map[string]int{}, left: make(chan struct{})}
		p.byBinary[binary] = one
	}
	return one
}

// starter is what the first start of a plugin makes: the manager of a cluster without such a storage has none of it.
type starter struct {
	tree    *proctree.Tree
	sockets string
}

func (p *Plugins) prepared() (*starter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, errEnded
	}
	if p.starter == nil {
		sockets, err := os.MkdirTemp("", "machineadm-")
		if err != nil {
			return nil, err
		}
		tree, err := proctree.Contain()
		if err != nil {
			return nil, errors.Join(err, os.Remove(sockets))
		}
		p.starter = &starter{tree, sockets}
	}
	return p.starter, nil
}

// start starts a plugin. The limits of host/launch bound it, and not the limit of the call that needs it.
func (p *Plugins) start(ctx context.Context, binary string) (*launch.Plugin, error) {
	s, err := p.prepared()
	if err != nil {
		return nil, err
	}
	found, err := p.catalog.Find(binary)
	if err != nil {
		return nil, err
	}
	// A fleet starts a plugin once.
	return launch.NewFleet(p.catalog, launch.Options{
		Log: p.o.Log, SocketDir: s.sockets, Environment: environment(), Tree: s.tree, Target: Here(),
	}).Start(context.WithoutCancel(ctx), found)
}

// Start waits for the end of the manager, and ends the plugins.
func (p *Plugins) Start(ctx context.Context) error {
	<-ctx.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.starter == nil {
		return nil
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(p.starter.tree.KillDescendants(ending), os.RemoveAll(p.starter.sockets))
}
