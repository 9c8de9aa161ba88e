package hardship

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/atomicfile"
)

// The files of the image that streams change. The parameters take more than one block of any file system.
const (
	motdFile   = "etc/motd"
	limitsFile = "etc/sysctl.d/99-machineadm-limits.conf"
	manyFile   = "etc/sysctl.d/99-machineadm-many.conf"
)

// stream is the desired state of an image, in this edition. Each edition changes every file.
func stream(edition int) string {
	const sysctl = "---\napiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: %s}\nspec: {provider: procfs, parameters: {%s}}\n"
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf("net.ipv4.conf.eth%d.rp_filter: %d", i, edition))
	}
	return fmt.Sprintf(sysctl, "limits", fmt.Sprintf("kernel.panic: %d, vm.max_map_count: 262144", edition)) +
		fmt.Sprintf("---\napiVersion: example.com/v1\nkind: Motd\nmetadata: {name: welcome}\nspec: {text: %s}\n",
			strings.Repeat(fmt.Sprintf("Edition %d. ", edition), 500)) +
		fmt.Sprintf(sysctl, "many", strings.Join(many, ", "))
}

// bench is an image root and the directories of its runs.
type bench struct{ dir, root, state, run, tmp, stream string }

// newBench returns a bench with its paths, on the disk that isolate has mounted.
func newBench(t *testing.T) *bench { t.Helper(); return newBenchIn(t, filepath.Join(built, benches)) }

func newBenchIn(t *testing.T, parent string) *bench {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "") //nolint:usetesting // the name of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	return &bench{dir, at("root"), at("state"), at("run"), at("tmp"), at("stream.yaml")}
}

// makeDirectories makes the directories that a run does not make, or that are hit before the first run.
func (b *bench) makeDirectories(t *testing.T) {
	t.Helper()
	for dir, mode := range map[string]os.FileMode{
		filepath.Join(b.root, "etc/sysctl.d"): 0o755, b.state: 0o700, b.run: 0o755, b.tmp: 0o700,
	} {
		if err := os.MkdirAll(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
}

// result is the result of a run.
type result struct {
	code           int
	stdout, stderr string
}

func (r result) String() string { return fmt.Sprintf("exit %d\n%s%s", r.code, r.stdout, r.stderr) }

// apply applies an edition to the image.
func (b *bench) apply(t *testing.T, edition int) result {
	t.Helper()
	put(t, b.stream, stream(edition))
	return b.host(t, "apply", "--path", b.stream, "--root", b.root)
}

// host runs the host with the directories of the bench, on the thread and so in the namespaces of the test.
func (b *bench) host(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	c := b.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	return result{exit(t, c, c.Run()), stdout.String(), stderr.String()}
}

func (b *bench) command(ctx context.Context, args ...string) *exec.Cmd {
	all := append([]string{"--state-dir", b.state, "--run-dir", b.run, "--plugin-dir", filepath.Join(built, plugins)}, args...)
	c := exec.CommandContext(ctx, filepath.Join(built, hostBinary), all...)
	c.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR=" + b.tmp}
	c.WaitDelay = waitLimit
	return c
}

// exit is the exit code of a command that has ended.
func exit(t *testing.T, c *exec.Cmd, err error) int {
	t.Helper()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode()
}

// report returns the report of a run, which is complete if it exists.
func (b *bench) report() (report.Report, error) { return b.reportIn("report.json") }

func (b *bench) reportIn(name string) (report.Report, error) {
	data, err := os.ReadFile(filepath.Join(b.run, name))
	if err != nil {
		return report.Report{}, err
	}
	return parseReport(data)
}

// parseReport parses a complete report.
func parseReport(data []byte) (report.Report, error) {
	var r report.Report
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("not a complete report: %w: %q", err, data)
	}
	if r.Kind != report.Kind || r.RunID == "" || r.Outcome == "" || r.Documents == nil || !strings.HasSuffix(string(data), "}\n") {
		return r, fmt.Errorf("not a complete report: %q", data)
	}
	return r, nil
}

// leftovers returns what a run must not leave below dirs: temporary files, directories of sockets, the record of
// an image, and invalid JSON.
func leftovers(dirs ...string) ([]string, error) {
	var found []string
	temporary := regexp.MustCompile(`^machineadm-(run-)?[0-9]+$`)
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist) && path == dir: // never made
				return nil
			case err != nil:
				return err
			case atomicfile.Reserved(e.Name()):
				found = append(found, "a temporary file: "+path)
			case e.Name() == ".pending":
				found = append(found, "a record of what is written: "+path)
			case strings.HasPrefix(e.Name(), ".sockets-"), temporary.MatchString(e.Name()):
				found = append(found, "a temporary directory: "+path)
			case strings.HasSuffix(e.Name(), ".json"):
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				if !json.Valid(data) {
					found = append(found, "not JSON: "+path)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// put writes a file and makes the directories above it.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
