package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/launch"
)

// Shared is what the runners of a suite have in common.
type Shared struct {
	// Machine is held for writing by a check that compares this machine, for reading by every other check.
	Machine sync.RWMutex
	// StartFailure names the case and the check for which the plugin did not start. It is reported once.
	StartFailure atomic.Pointer[string]
}

// Runner runs the checks of one case, one after the other.
type Runner struct {
	Case         *testcase.Case
	Binary, Base string
	Dir, Sockets string
	Canary       string
	ClaimKey     []byte
	Document     []byte
	// Counterpart is set for a source or a key provider.
	Counterpart *Counterpart
	// Representative marks the case of the checks that depend on no case.
	Representative bool
	// OfKind marks the first case of its kind that is applied.
	OfKind bool
	// StartTimeout limits a start.
	StartTimeout time.Duration
	// Shared is of all runners of a suite.
	Shared *Shared

	// idle are running plugins that fixtures share.
	idle   []*process.Plugin
	Starts int

	// Unsettled is set when outcome or object fails.
	Unsettled bool
	once      sync.Once
	reference Reference
}

// Values replace ${NAME} in config.yaml; nil for a configurator.
func (r *Runner) Values() map[string]string {
	if r.Counterpart == nil {
		return nil
	}
	return r.Counterpart.Values
}

// End ends the processes and the counterpart, and removes the directory.
func (r *Runner) End() error {
	r.EndIdle()
	var err error
	if r.Counterpart != nil {
		err = r.Counterpart.close()
	}
	return errors.Join(err, os.RemoveAll(r.Dir))
}

// acquire returns a running plugin that is not in used, started before or now.
func (r *Runner) acquire(ctx context.Context, used []*process.Plugin) (*process.Plugin, error) {
	for i, p := range r.idle {
		if !slices.Contains(used, p) {
			r.idle = slices.Delete(r.idle, i, i+1)
			return p, nil
		}
	}
	return r.start(ctx, process.UsualUmask)
}

// start starts a plugin, once more if it was too slow: a start that succeeds then shows a busy machine.
func (r *Runner) start(ctx context.Context, umask int) (*process.Plugin, error) {
	return r.StartAs(ctx, umask, []string{r.Binary})
}

// StartAs starts a plugin by another command than its binary alone.
func (r *Runner) StartAs(ctx context.Context, umask int, argv []string) (*process.Plugin, error) {
	p, err := r.startOnce(ctx, umask, argv)
	if failure, ok := errors.AsType[*launch.Error](err); ok && failure.Clause() == launch.ClauseInTime {
		return r.startOnce(ctx, umask, argv)
	}
	return p, err
}

// startOnce starts a plugin with a home directory of its own.
func (r *Runner) startOnce(ctx context.Context, umask int, argv []string) (*process.Plugin, error) {
	r.Starts++
	home, err := os.MkdirTemp(r.Dir, "home-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	if err := os.Chmod(home, 0o755); err != nil { //nolint:gosec // the usual mode of a home directory
		return nil, err
	}
	p, err := process.StartPlugin(ctx, argv, umask, launch.Options{SocketDir: r.Sockets, Timeout: r.StartTimeout}, home)
	if err != nil {
		return nil, err
	}
	p.Role = r.Case.Header.Role()
	return p, nil
}

// release returns a plugin that a fixture no longer uses.
func (r *Runner) release(p *process.Plugin) {
	if !p.Shared || p.Exited() {
		p.End()
		return
	}
	r.idle = append(r.idle, p)
}

// EndIdle ends all processes that are not in use, at once, because each may take seconds.
func (r *Runner) EndIdle() {
	var all sync.WaitGroup
	for _, p := range r.idle {
		all.Go(p.End)
	}
	all.Wait()
	r.idle = nil
}
