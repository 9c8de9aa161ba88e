package terminal

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

// built is where the binaries are: a test binary has no other way to hand something to its tests.
var built string

func TestMain(m *testing.M) {
	// Under nohup this process ignores SIGHUP, and so would the host. What is handled here is at its default there.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	os.Exit(testMain(m))
}

func testMain(m *testing.M) (code int) {
	var err error
	if built, err = os.MkdirTemp("", "terminal-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := os.RemoveAll(built); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	if err := tools.Products(context.Background(), built, map[string]string{"machineadm": "host/cmd/machineadm", "noop": "testenv/noop"}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// bench is an image root and the directories of its runs.
type bench struct {
	t                                   *testing.T
	dir, root, plugins, state, run, tmp string
}

func newBench(t *testing.T, script string) *bench {
	t.Helper()
	dir, err := os.MkdirTemp("", "tb") //nolint:usetesting // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	b := &bench{
		t: t, dir: dir, root: filepath.Join(dir, "root"), plugins: filepath.Join(dir, "plugins"),
		state: filepath.Join(dir, "state"), run: filepath.Join(dir, "run"), tmp: filepath.Join(dir, "t"),
	}
	for _, d := range []string{b.root, b.plugins, b.tmp} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	plugin := filepath.Join(b.plugins, "machineadm-noop-plugin-test")
	data, err := os.ReadFile(filepath.Join(built, "noop"))
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{plugin: string(data), plugin + ".script": script} {
		if err := require.WriteProgram(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// document is one for the scripted plugin.
func document(name, spec string) string {
	return "---\napiVersion: example.com/v1\nkind: Noop\nmetadata: {name: " + name + "}\nspec: {provider: test, " + spec + "}\n"
}

// command is machineadm on this bench, on a terminal that can draw.
func (b *bench) command(args ...string) *exec.Cmd {
	all := append([]string{"--plugin-dir", b.plugins, "--state-dir", b.state, "--run-dir", b.run}, args...)
	c := exec.CommandContext(within(b.t), filepath.Join(built, "machineadm"), all...)
	c.Env = []string{"TERM=xterm", "TMPDIR=" + b.tmp, "PATH=" + os.Getenv("PATH")}
	return c
}

// apply is machineadm apply of a stream to the image.
func (b *bench) apply(stream string, args ...string) *exec.Cmd { return b.on("apply", stream, args...) }

func (b *bench) on(command, stream string, args ...string) *exec.Cmd {
	b.t.Helper()
	path := filepath.Join(b.dir, "stream.yaml")
	if err := os.WriteFile(path, []byte(stream), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return b.command(append([]string{command, "--root", b.root, "--path", path}, args...)...)
}

func (b *bench) report() report.Report {
	b.t.Helper()
	var r report.Report
	data, err := os.ReadFile(filepath.Join(b.run, "report.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		b.t.Fatal(err)
	}
	return r
}
