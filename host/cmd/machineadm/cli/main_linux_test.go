package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
)

// binariesVariable names a directory that holds the binaries of this list already, for a run without a Go toolchain.
const binariesVariable = "MACHINEADM_TEST_BINARIES"

// Plugins are executed, not imported.
const (
	hostBinary   = "machineadm"
	noopBinary   = "noop"
	sysctlBinary = "machineadm-sysctl-plugin-procfs"
)

var (
	update = flag.Bool("update", false, "write the golden files anew")
	built  string // where the binaries are
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(testMain(m))
}

func testMain(m *testing.M) (code int) {
	if built = os.Getenv(binariesVariable); built != "" || fuzzing() {
		return m.Run()
	}
	var err error
	if built, err = os.MkdirTemp("", "cli-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := os.RemoveAll(built); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	for name, pkg := range map[string]string{
		hostBinary: "..", noopBinary: "../../../../testenv/noop", sysctlBinary: "../../../../plugins/sysctl/procfs",
	} {
		if err := require.Build(context.Background(), pkg, filepath.Join(built, name)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// fuzzing says whether only a fuzz target is run, by this process or one that it starts: it needs no binaries.
func fuzzing() bool {
	for _, name := range []string{"test.fuzz", "test.fuzzworker"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != f.DefValue {
			return true
		}
	}
	return false
}

// bench is an image root and everything that goes with a run on it. A run ends every child of this process: tests that
// start plugins do not run side by side.
type bench struct {
	t                               *testing.T
	dir, root, plugins, state, runs string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{
		t: t, dir: dir, root: filepath.Join(dir, "root"), plugins: filepath.Join(dir, "plugins"),
		state: filepath.Join(dir, "state"), runs: filepath.Join(dir, "run"),
	}
	for _, d := range []string{b.root, b.plugins} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// install puts a binary into the plugin directory; a scripted one takes its script from the file beside it.
func (b *bench) install(binary, as, script string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(built, binary))
	if err != nil {
		b.t.Fatal(err)
	}
	path := filepath.Join(b.plugins, as)
	if err := require.WriteProgram(path, data); err != nil {
		b.t.Fatal(err)
	}
	if script != "" {
		write(b.t, path+".script", script)
	}
	return path
}

const testPlugin = "machineadm-noop-plugin-test"

func (b *bench) noop(script string) string { return b.install(noopBinary, testPlugin, script) }

// stream writes a stream and returns its path.
func (b *bench) stream(text string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, "stream.yaml")
	write(b.t, path, text)
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// noopDoc is a document of the scripted plugin.
func noopDoc(name, spec string) string {
	return "---\napiVersion: example.com/v1\nkind: Noop\nmetadata: {name: " + name + "}\nspec: {provider: test, " + spec + "}\n"
}

// result is how a command ended.
type result struct {
	code        int
	out, errOut string
}

func (r result) String() string {
	return fmt.Sprintf("exit %d\nstdout:\n%s\nstderr:\n%s", r.code, r.out, r.errOut)
}

// flags are those that keep a run inside the bench.
func (b *bench) flags(args ...string) []string {
	return append([]string{"--plugin-dir", b.plugins, "--state-dir", b.state, "--run-dir", b.runs}, args...)
}

// run runs the command line in this process.
func (b *bench) run(args ...string) result {
	b.t.Helper()
	return execute(b.t, nil, b.flags(args...)...)
}

// apply applies a stream to the image.
func (b *bench) apply(stream string, args ...string) result {
	b.t.Helper()
	return b.run(append([]string{"apply", "--root", b.root, "--path", b.stream(stream)}, args...)...)
}

func execute(t *testing.T, in io.Reader, args ...string) result {
	t.Helper()
	if in == nil {
		in = strings.NewReader("")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out, errOut bytes.Buffer
	code := Execute(ctx, args, streams{in: in, out: &out, err: &errOut})
	return result{code: code, out: out.String(), errOut: errOut.String()}
}

// machineID is the ID of this machine, empty if it has none.
func (b *bench) machineID() string {
	b.t.Helper()
	id, err := os.ReadFile("/etc/machine-id")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.t.Fatal(err)
	}
	return strings.TrimSpace(string(id))
}

// report is what the last run left behind.
func (b *bench) report() report.Report {
	b.t.Helper()
	var r report.Report
	data, err := os.ReadFile(filepath.Join(b.runs, "report.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		b.t.Fatal(err)
	}
	return r
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Lstat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline.C:
			t.Fatalf("waited in vain: %s", what)
		case <-tick.C:
		}
	}
}

// golden compares with a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // read by everyone
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew); got:\n%s", path, got)
	}
}
