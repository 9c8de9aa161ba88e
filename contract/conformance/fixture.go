package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
)

// fixture is what one check works on: an image root with the case's tree, and directories beside it.
type fixture struct {
	runner *runner
	dir    string
	// root is the image root, outside a directory that the plugin must not change, state its state directory.
	root, outside, state string
	used                 []*plugin // in the order of their use
}

// fixture makes a fixture with the case's tree. The caller ends it with close.
func (r *runner) fixture() (*fixture, error) {
	dir, err := os.MkdirTemp(r.dir, "fixture-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	f := &fixture{
		runner: r, dir: dir, root: filepath.Join(dir, "root"), outside: filepath.Join(dir, "outside"),
		state: filepath.Join(dir, "state"),
	}
	for path, mode := range map[string]os.FileMode{f.root: 0o755, f.outside: 0o755, f.state: 0o700} {
		if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, mode)); err != nil {
			return nil, err
		}
	}
	if err := write(filepath.Join(f.outside, "file"), []byte("not yours\n"), 0o644); err != nil {
		return nil, err
	}
	return f, r.fillRoot(f.root)
}

// another runs a part of a check with a fixture of its own.
func (r *runner) another(part func(*fixture) (result, error)) (result, error) {
	f, err := r.fixture()
	if err != nil {
		return result{}, err
	}
	defer f.close()
	return part(f)
}

// fillRoot copies the case's tree over the base tree.
func (r *runner) fillRoot(root string) error {
	if r.base != "" {
		if err := copyTree(r.base, root, false, asIs); err != nil {
			return err
		}
	}
	return copyTree(filepath.Join(r.c.dir, "root"), root, true, asIs)
}

// close removes the fixture; other fixtures use its plugins.
func (f *fixture) close() {
	for _, p := range f.used {
		f.runner.release(p)
	}
	_ = os.RemoveAll(f.dir) // the runner's directory is removed with what is left
}

// start returns a plugin that this fixture has not used before: so an interrupted Apply is repeated by another process, as
// after a crash. The process may have served other fixtures of the case, as a host uses one process for many documents.
func (f *fixture) start(ctx context.Context) (*plugin, error) {
	p, err := f.runner.acquire(ctx, f.used)
	return f.use(p, err)
}

// startNew starts a process with this umask, for a check that depends on what a process has not done yet.
func (f *fixture) startNew(ctx context.Context, umask int) (*plugin, error) {
	p, err := f.runner.start(ctx, umask)
	return f.use(p, err)
}

func (f *fixture) use(p *plugin, err error) (*plugin, error) {
	if err == nil {
		f.used = append(f.used, p)
	}
	return p, err
}

// planning is the request of a plan: it has no state directory.
func (f *fixture) planning() pluginv1.Request {
	return pluginv1.Request{
		Document: f.runner.document, Root: f.root, Target: targetOf(f.root), ClaimKey: f.runner.claimKey,
	}
}

func (f *fixture) applying() pluginv1.Request {
	r := f.planning()
	r.StateDir, r.TimeLeft = f.state, callTimeout
	return r
}

// withDocument returns the request with another document.
func withDocument(r pluginv1.Request, doc []byte) pluginv1.Request {
	r.Document = doc
	return r
}

// targetOf returns the target that a host detects, or this machine's operating system where images are not supported.
func targetOf(root string) target.Target {
	t, err := target.Detect(root)
	if err != nil {
		return target.Target{OS: runtime.GOOS, Architecture: runtime.GOARCH, Distribution: runtime.GOOS, Name: runtime.GOOS}
	}
	return t
}

// expected returns the tree that the case expects, with a copy of expect/ beside the root.
func (f *fixture) expected() (tree, error) {
	c, dir := f.runner.c, filepath.Join(f.dir, "expect")
	if _, err := os.Lstat(filepath.Join(c.dir, "expect")); err != nil {
		if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755), f.runner.fillRoot(dir)); err != nil {
			return nil, err
		}
	} else if err := f.expectedFiles(dir); err != nil {
		return nil, err
	}
	for name, text := range c.expect.Modes {
		bits, err := strconv.ParseUint(text, 8, 32)
		if err != nil {
			return nil, err
		}
		if err := os.Chmod(filepath.Join(dir, filepath.FromSlash(name)), modeOf(bits)); err != nil {
			return nil, fmt.Errorf("modes of expect.yaml: %w", err)
		}
	}
	return readTree(dir)
}

func (f *fixture) expectedFiles(dir string) error {
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755)); err != nil {
		return err
	}
	if f.runner.base != "" {
		if err := copyTree(f.runner.base, dir, false, asIs); err != nil {
			return err
		}
	}
	filled := func(data []byte) []byte { return fill(data, f.runner.canary) }
	return copyTree(filepath.Join(f.runner.c.dir, "expect"), dir, true, filled)
}
