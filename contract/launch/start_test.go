package launch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// asPlugin as the only argument makes the test binary a plugin that describes itself.
const asPlugin = "serve-as-plugin"

func TestMain(m *testing.M) {
	served := map[string]pluginv1.Describer{asPlugin: mirror{}, asSource: source{}, asKeyProvider: keyProvider{}}
	if len(os.Args) == 2 && served[os.Args[1]] != nil {
		launch.Serve(served[os.Args[1]])
		return
	}
	if len(os.Args) == 3 && os.Args[1] == asStranger {
		if err := stranger(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// mirror describes its own environment, and plans as many bytes as the document has.
type mirror struct{}

func (mirror) Describe(context.Context, pluginv1.DescribeRequest) (pluginv1.Description, error) {
	stdin, err := io.ReadAll(os.Stdin)
	return pluginv1.Description{Name: "x" + string(stdin), Version: "v", Distributions: os.Environ()}, err
}

func (mirror) Plan(_ context.Context, r pluginv1.Request) (pluginv1.Plan, error) {
	return pluginv1.Plan{Changes: []pluginv1.Change{{ID: "a", Summary: "do a", Diff: string(r.Document)}}}, nil
}

func (mirror) Apply(_ context.Context, r pluginv1.Request, _ int, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
	return pluginv1.Finished{}, send(pluginv1.Progress{Message: string(r.Document)})
}

func (mirror) Stop(context.Context) error { return nil }

// socketDir returns a new directory for sockets.
func socketDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "p") //nolint:usetesting // t.TempDir is too long for the path of a socket
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

// start starts the test binary as a plugin.
func start(t *testing.T, environment []string, stderr io.Writer) *launch.Process {
	t.Helper()
	return startAs(t, asPlugin, environment, stderr)
}

// startAs starts the test binary as a plugin of a type.
func startAs(t *testing.T, as string, environment []string, stderr io.Writer) *launch.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sockets := socketDir(t)
	p, err := launch.Start(t.Context(), launch.Options{
		Command: exec.Command(self, as), Environment: environment, SocketDir: sockets, Stderr: stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if left, err := filepath.Glob(filepath.Join(sockets, "*", "*")); err != nil || len(left) > 0 {
			t.Errorf("sockets are left: %q (%v)", left, err)
		}
	})
	return p
}

// buffer may be written to by several goroutines.
type buffer struct {
	mutex sync.Mutex
	data  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.data.Write(p)
}

// TestPluginProcess: a plugin gets its constructed environment, go-plugin's own variables, and an empty stdin.
func TestPluginProcess(t *testing.T) {
	t.Setenv("CANARY", "canary")
	t.Setenv("HTTP_PROXY", "http://canary:canary@proxy:3128")
	given := launch.Environment(runtime.GOOS, os.LookupEnv)
	p := start(t, given, &buffer{})
	d, err := p.Describe(t.Context(), pluginv1.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != "x" {
		t.Error("the plugin could read from its host's stdin")
	}
	for _, entry := range d.Distributions {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.Contains(given, entry) && !strings.HasPrefix(name, "PLUGIN_") && name != "MACHINEADM_PLUGIN_COOKIE" {
			t.Errorf("the plugin's environment has %s", name)
		}
		if strings.Contains(entry, "canary") {
			t.Errorf("the value of %s leaks", name)
		}
	}
	if len(d.Distributions) < len(given) {
		t.Errorf("the plugin's environment is only %q", d.Distributions)
	}
}

// TestLargeMessages: the limit is above gRPC's 4 MiB, on both sides. Texts are cut.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	p := start(t, launch.Environment(runtime.GOOS, os.LookupEnv), &buffer{})
	doc := bytes.Repeat([]byte("x"), 5<<20)
	plan, err := p.Plan(t.Context(), pluginv1.Request{Document: doc})
	if err != nil || len(plan.Changes) != 1 || len(plan.Changes[0].Diff) != pluginv1.MaxDiffBytes {
		t.Errorf("the answer has %d changes, %v", len(plan.Changes), err)
	}
	received := 0
	_, err = p.Apply(t.Context(), pluginv1.Request{Document: doc}, 0, func(e pluginv1.Event) error {
		progress, ok := e.(pluginv1.Progress)
		if !ok {
			return fmt.Errorf("received a %T", e)
		}
		received = len(progress.Message)
		return nil
	})
	if err != nil || received != pluginv1.MaxTextBytes {
		t.Errorf("received %d bytes, %v", received, err)
	}
	_, err = p.Plan(t.Context(), pluginv1.Request{Document: bytes.Repeat([]byte("x"), pluginv1.MaxMessageBytes)})
	if e, ok := errors.AsType[*pluginv1.Error](err); !ok || !strings.Contains(e.Message, "which must be 64 MiB") {
		t.Errorf("error %v for a message beyond the limit", err)
	}
}

// TestCrashedPlugin: a call to a plugin that has ended is a crash.
func TestCrashedPlugin(t *testing.T) {
	t.Parallel()
	p := start(t, launch.Environment(runtime.GOOS, os.LookupEnv), &buffer{})
	p.Kill()
	_, err := p.Plan(context.WithoutCancel(t.Context()), pluginv1.Request{})
	if !errors.Is(err, pluginv1.ErrCrashed) || !p.Exited() {
		t.Errorf("error %v, want ErrCrashed", err)
	}
}
