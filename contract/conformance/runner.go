package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/machineadm/machineadm/contract/launch"
)

// shared is what the runners of a suite have in common.
type shared struct {
	// machine is held for writing by a check that compares this machine, for reading by every other check.
	machine sync.RWMutex
	// startFailure names the case and the check for which the plugin did not start. It is reported once.
	startFailure atomic.Pointer[string]
}

// runner runs the checks of one case, one after the other.
type runner struct {
	c            *Case
	binary, base string
	dir, sockets string
	canary       string
	claimKey     []byte
	document     []byte
	// counterpart is set for a source or a key provider.
	counterpart *counterpart
	// representative marks the case of the checks that depend on no case.
	representative bool
	// ofKind marks the first case of its kind that is applied.
	ofKind bool
	// startTimeout limits a start.
	startTimeout time.Duration
	// shared is of all runners of a suite.
	shared *shared

	// idle are running plugins that fixtures share.
	idle   []*plugin
	starts int

	// unsettled is set when outcome or object fails.
	unsettled bool
	once      sync.Once
	reference reference
}

// values replace ${NAME} in config.yaml; nil for a configurator.
func (r *runner) values() map[string]string {
	if r.counterpart == nil {
		return nil
	}
	return r.counterpart.values
}

func (r *runner) end() error {
	r.endIdle()
	var err error
	if r.counterpart != nil {
		err = r.counterpart.close()
	}
	return errors.Join(err, os.RemoveAll(r.dir))
}

// acquire returns a running plugin that is not in used, started before or now.
func (r *runner) acquire(ctx context.Context, used []*plugin) (*plugin, error) {
	for i, p := range r.idle {
		if !slices.Contains(used, p) {
			r.idle = slices.Delete(r.idle, i, i+1)
			return p, nil
		}
	}
	return r.start(ctx, usualUmask)
}

// start starts a plugin, once more if it was too slow: a start that succeeds then shows a busy machine.
func (r *runner) start(ctx context.Context, umask int) (*plugin, error) {
	return r.startAs(ctx, umask, []string{r.binary})
}

// startAs starts a plugin by another command than its binary alone.
func (r *runner) startAs(ctx context.Context, umask int, argv []string) (*plugin, error) {
	p, err := r.startOnce(ctx, umask, argv)
	if failure, ok := errors.AsType[*launch.Error](err); ok && failure.Clause() == launch.ClauseInTime {
		return r.startOnce(ctx, umask, argv)
	}
	return p, err
}

// startOnce starts a plugin with a home directory of its own.
func (r *runner) startOnce(ctx context.Context, umask int, argv []string) (*plugin, error) {
	r.starts++
	home, err := os.MkdirTemp(r.dir, "home-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	if err := os.Chmod(home, 0o755); err != nil { //nolint:gosec // the usual mode of a home directory
		return nil, err
	}
	p, err := startPlugin(ctx, argv, umask, launch.Options{SocketDir: r.sockets, Timeout: r.startTimeout}, home)
	if err != nil {
		return nil, err
	}
	p.role = r.c.header.role()
	return p, nil
}

// release returns a plugin that a fixture no longer uses.
func (r *runner) release(p *plugin) {
	if !p.shared || p.Exited() {
		p.end()
		return
	}
	r.idle = append(r.idle, p)
}

// endIdle ends all processes that are not in use, at once, because each may take seconds.
func (r *runner) endIdle() {
	var all sync.WaitGroup
	for _, p := range r.idle {
		all.Go(p.end)
	}
	all.Wait()
	r.idle = nil
}
