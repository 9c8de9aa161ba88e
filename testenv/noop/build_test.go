package main

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

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

// binaries are the host and the scripted plugin, built once for all tests.
type binaries struct{ dir string }

// build is set by TestMain, which has no other way to pass a value to tests.
var build binaries

func TestMain(m *testing.M) {
	// Under nohup this process ignores SIGHUP, and the host would inherit that. A signal that is handled here has its
	// default there.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	dir, err := os.MkdirTemp("", "machineadm-noop-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := tools.Products(context.Background(), dir, map[string]string{"machineadm": "host/cmd/machineadm", "noop": "testenv/noop"}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	build = binaries{dir: dir}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// bench is one scratch machine: an image root, plugins, state and run directories.
type bench struct {
	t                              *testing.T
	root, plugins, state, run, dir string
	tmp                            string // for the host's sockets, which a killed host leaves behind
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{
		t: t, dir: dir, root: filepath.Join(dir, "root"), plugins: filepath.Join(dir, "plugins"),
		state: filepath.Join(dir, "state"), run: filepath.Join(dir, "run"),
	}
	var err error
	if b.tmp, err = os.MkdirTemp("", "nb"); err != nil { //nolint:usetesting // t.TempDir is too long for the path of a socket
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(b.tmp); err != nil {
			t.Error(err)
		}
	})
	for _, d := range []string{b.root, b.plugins} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// install puts a scripted plugin in place and returns its path.
func (b *bench) install(binary string, s script) string {
	b.t.Helper()
	path := filepath.Join(b.plugins, binary)
	data, err := os.ReadFile(filepath.Join(build.dir, "noop"))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := require.WriteProgram(path, data); err != nil {
		b.t.Fatal(err)
	}
	b.script(path, s)
	return path
}

func (b *bench) script(path string, s script) {
	b.t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path+".script", data, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// result is how the command ended.
type result struct {
	code           int
	stdout, stderr string
	report         report.Report
	details        report.Details
}

// command is the host on this bench, unstarted.
func (b *bench) command(ctx context.Context, args ...string) *exec.Cmd {
	all := append([]string{"--plugin-dir", b.plugins, "--state-dir", b.state, "--run-dir", b.run}, args...)
	c := exec.CommandContext(ctx, filepath.Join(build.dir, "machineadm"), all...)
	c.Env = append(os.Environ(), "TMPDIR="+b.tmp)
	return c
}

// apply applies a stream to the image root of the bench.
func (b *bench) apply(stream string, args ...string) result {
	b.t.Helper()
	return b.host(append([]string{"apply", "--root", b.root, "--path", b.stream(stream)}, args...)...)
}

func (b *bench) stream(text string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, "stream.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func (b *bench) host(args ...string) result {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	c := b.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	r := result{code: c.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
	b.read("report.json", &r.report)
	b.read("details.json", &r.details)
	return r
}

func (b *bench) read(name string, into any) {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.run, name))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil {
		b.t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		b.t.Fatalf("%s: %v", name, err)
	}
}

func (r result) String() string {
	return fmt.Sprintf("exit %d\nstdout:\n%s\nstderr:\n%s", r.code, r.stdout, r.stderr)
}

// doc is a Noop document with this spec, in JSON, which is YAML.
func doc(name string, s spec) string {
	data, err := json.Marshal(struct {
		Provider string `json:"provider"`
		spec
	}{"test", s})
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("---\napiVersion: example.com/v1\nkind: Noop\nmetadata: {name: %s}\nspec: %s\n", name, data)
}

const binary = "machineadm-noop-plugin-test"

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

// alive reports whether a process with this ID runs; a zombie does not.
func alive(pid string) bool {
	data, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(data), ") ")
	return !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}
