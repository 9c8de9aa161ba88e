package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/internal/proctree"
	"github.com/machineadm/machineadm/internal/require"
)

// binariesVariable names a directory that holds the binary noop already, for a run without a Go toolchain.
const binariesVariable = "MACHINEADM_TEST_BINARIES"

// noop is the scripted plugin of testenv/noop. It is executed, not imported.
var noop string

// init keeps the main goroutine on the first thread, which adopts orphans: other goroutines start the children of tests
// on other threads, so that no Tree takes one for an orphan.
func init() { runtime.LockOSThread() } //nolint:gochecknoinits // before the first goroutine

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) (code int) {
	dir := os.Getenv(binariesVariable)
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "launch-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() {
			if err := os.RemoveAll(dir); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}()
		if err := require.Build(context.Background(), "../../testenv/noop", filepath.Join(dir, "noop")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	noop = filepath.Join(dir, "noop")
	// The goroutine of os/signal would begin with the first fleet, and stays: tests count what a fleet leaves.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	signal.Stop(signals)
	return m.Run()
}

// script is what testenv/noop reads from the file beside it, as far as it is needed here.
type script struct {
	Start    string `json:"start,omitempty"`
	Describe string `json:"describe,omitempty"`
	Child    string `json:"child,omitempty"`
	Witness  string `json:"witness,omitempty"`
	Say      string `json:"say,omitempty"`
}

// shelf is a directory of plugins.
type shelf struct {
	t   *testing.T
	dir string
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{t: t, dir: filepath.Join(t.TempDir(), "plugins")}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// put installs a scripted plugin.
func (s *shelf) put(provider string, what script) catalog.Plugin {
	s.t.Helper()
	p := catalog.Plugin{Binary: "machineadm-noop-plugin-" + provider}
	p.Path = filepath.Join(s.dir, p.Binary)
	program, err := os.ReadFile(noop)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := require.WriteProgram(p.Path, program); err != nil {
		s.t.Fatal(err)
	}
	data, err := json.Marshal(what)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(p.Path+".script", data, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return p
}

// fleet starts plugins of this shelf. What is left of them is ended with the test.
//
// KillAll ends every child of this process: the tests of this package that have any do not run side by side.
func (s *shelf) fleet(change func(*Options)) *Fleet {
	s.t.Helper()
	tree, err := proctree.Contain()
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := catalog.New(catalog.Options{First: []string{s.dir}})
	if err != nil {
		s.t.Fatal(err)
	}
	sockets, err := os.MkdirTemp("", "fleet-") // t.TempDir is too long for a socket's name
	if err != nil {
		s.t.Fatal(err)
	}
	o := Options{
		Log: slog.New(slog.DiscardHandler), SocketDir: sockets, Environment: launch.Environment("linux", os.LookupEnv),
		Tree: tree, Target: target.Target{OS: "linux", Distribution: "debian"},
	}
	if change != nil {
		change(&o)
	}
	f := NewFleet(c, o)
	s.t.Cleanup(func() {
		if err := f.KillAll(s.t.Context()); err != nil && s.t.Context().Err() == nil {
			s.t.Error(err)
		}
		left, err := os.ReadDir(sockets)
		if err != nil || len(left) > 0 {
			s.t.Errorf("in the directory of the sockets is left: %v (%v)", left, err)
		}
		if err := os.RemoveAll(sockets); err != nil {
			s.t.Error(err)
		}
	})
	return f
}
