// Package rig is what a check works with: the processes and image roots of a case, its counterpart, the undisturbed run to
// compare with, and the findings.
package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/conformance/internal/trees"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
)

// Fixture is what one check works on: an image root with the case's tree, and directories beside it.
type Fixture struct {
	Runner *Runner
	Dir    string
	// Root is the image root, outside a directory that the plugin must not change, state its state directory.
	Root, Outside, state string
	used                 []*process.Plugin // in the order of their use
}

// Fixture makes a fixture with the case's tree. The caller ends it with close.
func (r *Runner) Fixture() (*Fixture, error) {
	dir, err := os.MkdirTemp(r.Dir, "fixture-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	f := &Fixture{
		Runner: r, Dir: dir, Root: filepath.Join(dir, "root"), Outside: filepath.Join(dir, "outside"),
		state: filepath.Join(dir, "state"),
	}
	for path, mode := range map[string]os.FileMode{f.Root: 0o755, f.Outside: 0o755, f.state: 0o700} {
		if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, mode)); err != nil {
			return nil, err
		}
	}
	if err := trees.Write(filepath.Join(f.Outside, "file"), []byte("not yours\n"), 0o644); err != nil {
		return nil, err
	}
	return f, r.FillRoot(f.Root)
}

// Another runs a part of a check with a fixture of its own.
func (r *Runner) Another(part func(*Fixture) (Result, error)) (Result, error) {
	f, err := r.Fixture()
	if err != nil {
		return Result{}, err
	}
	defer f.Close()
	return part(f)
}

// FillRoot copies the case's tree over the base tree.
func (r *Runner) FillRoot(root string) error {
	if r.Base != "" {
		if err := trees.CopyTree(r.Base, root, false, trees.AsIs); err != nil {
			return err
		}
	}
	return trees.CopyTree(filepath.Join(r.Case.Dir, "root"), root, true, trees.AsIs)
}

// Close removes the fixture; other fixtures use its plugins.
func (f *Fixture) Close() {
	for _, p := range f.used {
		f.Runner.release(p)
	}
	_ = os.RemoveAll(f.Dir) // the runner's directory is removed with what is left
}

// Start returns a plugin that this fixture has not used before: so an interrupted Apply is repeated by another process, as
// after a crash. The process may have served other fixtures of the case, as a host uses one process for many documents.
func (f *Fixture) Start(ctx context.Context) (*process.Plugin, error) {
	p, err := f.Runner.acquire(ctx, f.used)
	return f.Use(p, err)
}

// StartNew starts a process with this umask, for a check that depends on what a process has not done yet.
func (f *Fixture) StartNew(ctx context.Context, umask int) (*process.Plugin, error) {
	p, err := f.Runner.start(ctx, umask)
	return f.Use(p, err)
}

// Use adds a plugin to those that the fixture has used.
func (f *Fixture) Use(p *process.Plugin, err error) (*process.Plugin, error) {
	if err == nil {
		f.used = append(f.used, p)
	}
	return p, err
}

// Planning is the request of a plan: it has no state directory.
func (f *Fixture) Planning() pluginv1.Request {
	return pluginv1.Request{
		Document: f.Runner.Document, Root: f.Root, Target: TargetOf(f.Root), ClaimKey: f.Runner.ClaimKey,
	}
}

// Applying is the request of an Apply: it has the state directory and a time limit.
func (f *Fixture) Applying() pluginv1.Request {
	r := f.Planning()
	r.StateDir, r.TimeLeft = f.state, process.CallTimeout
	return r
}

// WithDocument returns the request with another document.
func WithDocument(r pluginv1.Request, doc []byte) pluginv1.Request {
	r.Document = doc
	return r
}

// TargetOf returns the target that a host detects, or this machine's operating system where images are not supported.
func TargetOf(root string) target.Target {
	t, err := target.Detect(root)
	if err != nil {
		return target.Target{OS: runtime.GOOS, Architecture: runtime.GOARCH, Distribution: runtime.GOOS, Name: runtime.GOOS}
	}
	return t
}

// Expected returns the tree that the case expects, with a copy of expect/ beside the root.
func (f *Fixture) Expected() (trees.Tree, error) {
	c, dir := f.Runner.Case, filepath.Join(f.Dir, "expect")
	if _, err := os.Lstat(filepath.Join(c.Dir, "expect")); err != nil {
		if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755), f.Runner.FillRoot(dir)); err != nil {
			return nil, err
		}
	} else if err := f.expectedFiles(dir); err != nil {
		return nil, err
	}
	for name, text := range c.Expect.Modes {
		bits, err := strconv.ParseUint(text, 8, 32)
		if err != nil {
			return nil, err
		}
		if err := os.Chmod(filepath.Join(dir, filepath.FromSlash(name)), trees.ModeOf(bits)); err != nil {
			return nil, fmt.Errorf("modes of expect.yaml: %w", err)
		}
	}
	return trees.ReadTree(dir)
}

func (f *Fixture) expectedFiles(dir string) error {
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o755)); err != nil {
		return err
	}
	if f.Runner.Base != "" {
		if err := trees.CopyTree(f.Runner.Base, dir, false, trees.AsIs); err != nil {
			return err
		}
	}
	filled := func(data []byte) []byte { return testcase.Fill(data, f.Runner.Canary) }
	return trees.CopyTree(filepath.Join(f.Runner.Case.Dir, "expect"), dir, true, filled)
}
