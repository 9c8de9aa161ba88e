package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// runner runs the checks of one case, one after the other.
type runner struct {
	c            *Case
	binary, base string
	dir, sockets string
	canary       string
	claimKey     []byte
	document     []byte
	// representative marks the case of the checks that depend on no case.
	representative bool
	// machine is held for writing by a check that compares this machine, for reading by every other check.
	machine *sync.RWMutex

	// idle are running plugins that fixtures share.
	idle   []*plugin
	starts int

	// unsettled is set when outcome fails.
	unsettled bool
	// startFailure names the check for which the plugin did not start. It is reported once.
	startFailure string

	once      sync.Once
	reference reference
}

// newRunner prepares the case with this index. The caller ends it with end.
func (s Suite) newRunner(index int) (*runner, error) {
	r := &runner{
		c: s.Cases[index], canary: newCanary(), claimKey: newClaimKey(), representative: index == s.representative(),
		machine: s.machine,
	}
	var err error
	if r.binary, err = filepath.Abs(s.Binary); err != nil {
		return nil, err
	}
	if s.Root != "" {
		if r.base, err = filepath.Abs(s.Root); err != nil {
			return nil, err
		}
	}
	if r.document, err = r.c.document(r.canary); err != nil {
		return nil, err
	}
	// Not below the directory of a test: the path of a socket has room for about a hundred characters.
	if r.dir, err = os.MkdirTemp("", "conformance-"); err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	r.sockets = filepath.Join(r.dir, "s")
	if err := os.Mkdir(r.sockets, 0o700); err != nil {
		return nil, errors.Join(err, r.end())
	}
	return r, nil
}

func (r *runner) end() error {
	r.endIdle()
	return os.RemoveAll(r.dir)
}

// run runs one check.
func (r *runner) run(ctx context.Context, check Check) (Result, error) {
	if check.alone {
		r.machine.Lock()
		defer r.machine.Unlock()
	} else {
		r.machine.RLock()
		defer r.machine.RUnlock()
	}
	since, before := time.Now(), r.starts
	got, err := r.attempt(ctx, check)
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s: %s: %w", r.c.Name, check.Name, err)
	}
	r.unsettled = r.unsettled || check.Name == outcomeName && got.status == Fail
	return got.export(r.c, check, since, r.starts-before), nil
}

func (r *runner) attempt(ctx context.Context, check Check) (result, error) {
	switch {
	case check.once && !r.representative:
		return skipped("does not depend on the case: checked with another one"), nil
	case r.startFailure != "":
		return skipped("the plugin does not start, see %s", r.startFailure), nil
	}
	f, err := r.fixture()
	if err != nil {
		return result{}, err
	}
	got, err := check.run(ctx, f)
	f.close()
	if err != nil || got.status == Fail {
		r.endIdle() // a later check has no use for the state that a finding leaves in a process
	}
	var died *crash
	if !errors.As(err, &died) {
		return got, err
	}
	if died.atStart {
		r.startFailure = check.Name
		return failed(finding{
			clause: "H-10", expected: "the plugin starts, and its first line of standard output is the handshake",
			got:   "the plugin does not start: " + died.Error(),
			cause: "an error of its own startup, which is in the last output, or output before the handshake line",
		}), nil
	}
	return failed(finding{
		clause: check.Clause, expected: "the plugin answers every call and ends when it is asked to", got: died.Error(),
		cause: "an exception or a panic that no handler catches, see the last output",
	}), nil
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

// start starts a plugin with a home directory of its own.
func (r *runner) start(ctx context.Context, umask int) (*plugin, error) {
	r.starts++
	home, err := os.MkdirTemp(r.dir, "home-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	if err := os.Chmod(home, 0o755); err != nil { //nolint:gosec // the usual mode of a home directory
		return nil, err
	}
	return startPlugin(ctx, r.binary, r.sockets, home, umask)
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
