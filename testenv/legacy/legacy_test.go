// Package legacy runs plugins of other releases with the host of today: yesterday's as it was kept in v1alpha1, and one
// of a later day that says what this release does not know.
package legacy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
)

// built is where TestMain puts the binaries; a test binary has no other way to hand something to its tests.
var built string

const (
	before   = "v1alpha1" // yesterday's plugin
	after    = "next"     // of a later day
	provider = "test"
)

func TestMain(m *testing.M) {
	// Under nohup this process ignores SIGHUP, and so would the host, which rightly honours that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	dir, err := os.MkdirTemp("", "machineadm-legacy-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := 1
	if err := build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		built = dir
		code = m.Run()
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// build builds the host and the plugins. Yesterday's is a module of its own: its go.mod and go.sum say what it is made
// of, and -mod=readonly that this is so. What the module cache does not hold of it is fetched.
func build(dir string) error {
	for name, in := range map[string]string{"machineadm": "../../host/cmd/machineadm", before: before, after: after} {
		c := exec.Command("go", "build", "-mod=readonly", "-trimpath", "-tags=grpcnotrace", "-gcflags=all=-dwarf=false", // as build.sh
			"-ldflags=-s -w", "-o", filepath.Join(dir, name), ".")
		c.Dir = in
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=") // a node has its own C library
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", in, err, out)
		}
	}
	return nil
}

// bench is one scratch machine: an image root, plugins, state and run directories.
type bench struct {
	t                              *testing.T
	root, plugins, state, run, dir string
	tmp                            string // for the host's sockets
}

// newBench installs a plugin for the provider.
func newBench(t *testing.T, plugin, provider string) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{
		t: t, dir: dir, root: filepath.Join(dir, "root"), plugins: filepath.Join(dir, "plugins"),
		state: filepath.Join(dir, "state"), run: filepath.Join(dir, "run"), tmp: short(t),
	}
	for _, d := range []string{b.root, b.plugins} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	install(t, plugin, filepath.Join(b.plugins, naming.Binary("Noop", provider)))
	return b
}

// short is a directory whose path leaves room for a socket's.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "l") //nolint:usetesting // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func install(t *testing.T, plugin, path string) {
	t.Helper()
	if err := require.CopyProgram(path, filepath.Join(built, plugin)); err != nil {
		t.Fatal(err)
	}
}

// doc is a Noop document with this spec, in YAML's flow style.
func doc(name, spec string) string {
	return fmt.Sprintf("---\napiVersion: example.com/v1\nkind: Noop\nmetadata: {name: %s}\nspec: {%s}\n", name, spec)
}

// command is the host on this bench, unstarted. The plugin's answers go to the image root.
func (b *bench) command(ctx context.Context, verb, stream string, args ...string) *exec.Cmd {
	b.t.Helper()
	path := filepath.Join(b.dir, "stream.yaml")
	if err := os.WriteFile(path, []byte(stream), 0o600); err != nil {
		b.t.Fatal(err)
	}
	all := append([]string{
		verb, "--root", b.root, "--path", path, "--plugin-dir", b.plugins, "--state-dir", b.state, "--run-dir", b.run,
	}, args...)
	c := exec.CommandContext(ctx, filepath.Join(built, "machineadm"), all...)
	c.Env = append(os.Environ(), "TMPDIR="+b.tmp)
	return c
}

// result is how a run ended.
type result struct {
	code           int
	stdout, stderr string
	report         report.Report
}

func (r result) String() string {
	return fmt.Sprintf("exit %d\nstdout:\n%s\nstderr:\n%s", r.code, r.stdout, r.stderr)
}

// outcomes are the outcomes of the documents.
func (r result) outcomes() string {
	var out []string
	for _, d := range r.report.Documents {
		out = append(out, string(d.Outcome))
	}
	return strings.Join(out, " ")
}

func (b *bench) host(verb, stream string, args ...string) result {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	c := b.command(ctx, verb, stream, args...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	r := result{code: c.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
	if verb == "apply" {
		r.report = b.report()
	}
	return r
}

func (b *bench) report() report.Report {
	b.t.Helper()
	var r report.Report
	data, err := os.ReadFile(filepath.Join(b.run, "report.json"))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// has reports whether the root has the file.
func (b *bench) has(name string) bool {
	b.t.Helper()
	_, err := os.Stat(filepath.Join(b.root, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.t.Fatal(err)
	}
	return err == nil
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline.C:
			t.Fatalf("not reached in time: %s", what)
		case <-tick.C:
		}
	}
}
