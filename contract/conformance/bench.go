package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
)

// callTimeout is how long one call may take: the host's for a plan (SPEC.md). No case is about patience.
const callTimeout = 60 * time.Second

// runtimeVersion is the version of the runtime that plugins are told.
const runtimeVersion = "0.0.0-conformance"

// bench is one scratch place for one check: an image root, and beside it everything that the plugin has no business
// with.
type bench struct {
	trial *trial
	dir   string
	// root is the image root. outside holds a file or two that nobody may touch, home is the plugin's working and
	// home directory, state its state directory.
	root, outside, home, state string
	plugins                    []*plugin
}

// bench makes one with the case's tree. End it with close.
func (t *trial) bench() (*bench, error) {
	dir, err := os.MkdirTemp(t.dir, "bench-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	b := &bench{
		trial: t, dir: dir, root: filepath.Join(dir, "root"), outside: filepath.Join(dir, "outside"),
		home: filepath.Join(dir, "home"), state: filepath.Join(dir, "state"),
	}
	for path, mode := range map[string]os.FileMode{b.root: 0o755, b.outside: 0o755, b.home: 0o755, b.state: 0o700} {
		if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, mode)); err != nil {
			return nil, err
		}
	}
	if err := write(filepath.Join(b.outside, "file"), []byte("not yours\n"), 0o644); err != nil {
		return nil, err
	}
	return b, t.fillRoot(b.root)
}

// fillRoot lays the case's tree over the base tree.
func (t *trial) fillRoot(root string) error {
	if t.base != "" {
		if err := copyTree(t.base, root, false, asIs); err != nil {
			return err
		}
	}
	return copyTree(filepath.Join(t.c.dir, "root"), root, true, asIs)
}

// close ends the bench's plugins and removes it.
func (b *bench) close() {
	for _, p := range b.plugins {
		p.end()
	}
	_ = os.RemoveAll(b.dir) // the trial's directory is removed with all that is left
}

// start starts a plugin with the usual umask.
func (b *bench) start(ctx context.Context) (*plugin, error) { return b.startWith(ctx, usualUmask) }

func (b *bench) startWith(ctx context.Context, umask int) (*plugin, error) {
	p, err := startPlugin(ctx, b.trial.binary, b.trial.sockets, b.home, umask)
	if err != nil {
		return nil, err
	}
	b.plugins = append(b.plugins, p)
	return p, nil
}

// planning is the request of a plan: it has no state directory.
func (b *bench) planning() pluginv1.Request {
	return pluginv1.Request{
		Document: b.trial.document, Root: b.root, Target: targetOf(b.root), ClaimKey: b.trial.claimKey,
	}
}

func (b *bench) applying() pluginv1.Request {
	r := b.planning()
	r.StateDir, r.TimeLeft = b.state, callTimeout
	return r
}

// targetOf is what a host would find. Where images are unknown it is this machine's operating system.
func targetOf(root string) target.Target {
	t, err := target.Detect(root)
	if err != nil {
		return target.Target{OS: runtime.GOOS, Architecture: runtime.GOARCH, Distribution: runtime.GOOS, Name: runtime.GOOS}
	}
	return t
}

// describe asks the plugin what it is.
func (p *plugin) describe(ctx context.Context, r pluginv1.Request) (pluginv1.Description, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d, err := p.Describe(ctx, pluginv1.DescribeRequest{Root: r.Root, Target: r.Target, RuntimeVersion: runtimeVersion})
	return d, p.explain(err)
}

// plan asks for a plan.
func (p *plugin) plan(ctx context.Context, r pluginv1.Request) (pluginv1.Plan, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	plan, err := p.Plan(ctx, r)
	return plan, p.explain(err)
}

// explain adds the last words of a plugin that is gone.
func (p *plugin) explain(err error) error {
	switch {
	case errors.Is(err, pluginv1.ErrCrashed):
		return &crash{cause: err, words: p.stderr.tail()}
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", callTimeout)
	}
	return err
}

// applied is what an Apply did.
type applied struct {
	events   []pluginv1.Event
	finished pluginv1.Finished
	// err is anything but a stream that ended with one finished.
	err error
}

// apply applies. on, which may be nil, is called with the number of each event, from 0, as it comes.
func (p *plugin) apply(
	ctx context.Context, r pluginv1.Request, limit int, on func(int, pluginv1.Event),
) applied {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var out applied
	out.finished, out.err = p.Apply(ctx, r, limit, func(e pluginv1.Event) error {
		out.events = append(out.events, e)
		if on != nil {
			on(len(out.events)-1, e)
		}
		return nil
	})
	out.err = p.explain(out.err)
	return out
}

// failure is what went wrong, nil when nothing did.
func (a applied) failure() error {
	if a.err != nil {
		return a.err
	}
	if a.finished.Error != nil {
		return a.finished.Error
	}
	return nil
}

// started and changed return the IDs of the events.
func (a applied) started() []string {
	var out []string
	for _, e := range a.events {
		if e, ok := e.(pluginv1.Started); ok {
			out = append(out, e.Change.ID)
		}
	}
	return out
}

// deferred are the changes that Apply left for first boot.
func (a applied) deferred() []string {
	var out []string
	for _, change := range a.finished.Deferred {
		out = append(out, change.ID)
	}
	return out
}

func (a applied) changed() []string {
	var out []string
	for _, e := range a.events {
		if e, ok := e.(pluginv1.Changed); ok {
			out = append(out, e.ID)
		}
	}
	return out
}

// expected is the tree that the case expects, with a copy of expect/ beside the bench's root.
func (b *bench) expected() (tree, error) {
	c, dir := b.trial.c, filepath.Join(b.dir, "expect")
	if _, err := os.Lstat(filepath.Join(c.dir, "expect")); err != nil {
		if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755), b.trial.fillRoot(dir)); err != nil {
			return nil, err
		}
	} else if err := b.expectedFiles(dir); err != nil {
		return nil, err
	}
	for name, text := range c.expect.Modes {
		bits, err := strconv.ParseUint(text, 8, 32)
		if err != nil {
			return nil, err
		}
		if err := os.Chmod(filepath.Join(dir, filepath.FromSlash(name)), os.FileMode(bits)); err != nil {
			return nil, fmt.Errorf("modes of expect.yaml: %w", err)
		}
	}
	return readTree(dir)
}

func (b *bench) expectedFiles(dir string) error {
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755)); err != nil {
		return err
	}
	if b.trial.base != "" {
		if err := copyTree(b.trial.base, dir, false, asIs); err != nil {
			return err
		}
	}
	filled := func(data []byte) []byte { return fill(data, b.trial.canary) }
	return copyTree(filepath.Join(b.trial.c.dir, "expect"), dir, true, filled)
}

// clone is the document with more in it.
func clone(r pluginv1.Request, doc []byte) pluginv1.Request {
	r.Document = doc
	return r
}
