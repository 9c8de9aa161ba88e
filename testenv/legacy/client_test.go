package legacy

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/conformance"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file under testdata, which may be written anew.
func golden(t *testing.T, name, got string, anew bool) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if anew {
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
		t.Errorf("%s differs; got:\n%s", path, got)
	}
}

// launch starts a plugin with today's client, for what today's host does not ask for.
func launch(t *testing.T, plugin, provider string) *pluginv1.Process {
	t.Helper()
	path := filepath.Join(t.TempDir(), naming.Binary("Noop", provider))
	install(t, plugin, path)
	p, err := pluginv1.Launch(t.Context(), pluginv1.LaunchOptions{
		Command: exec.Command(path), SocketDir: short(t), Stderr: os.Stderr,
		Environment: pluginv1.Environment(runtime.GOOS, os.LookupEnv),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// request is one for an empty image root. The document is in JSON.
func request(t *testing.T, spec string) pluginv1.Request {
	t.Helper()
	root := t.TempDir()
	found, err := target.Detect(root)
	if err != nil {
		t.Fatal(err)
	}
	return pluginv1.Request{
		Document: []byte(`{"apiVersion":"example.com/v1","kind":"Noop","metadata":{"name":"a"},"spec":` + spec + `}`),
		Root:     root, Target: found,
	}
}

// TestLimitOfTheReleaseBefore: no host sends a limit yet, but yesterday's plugin obeys one.
func TestLimitOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	p := launch(t, before, provider)
	r := request(t, `{"touch":["a","b","c"]}`)
	if err := p.Stop(t.Context()); err != nil { // nothing is applied: it stops nothing, neither now nor later
		t.Fatal(err)
	}
	for _, step := range []struct {
		limit   int
		changed string
		stopped bool
	}{{2, "file:a file:b", true}, {2, "file:c", false}, {1, "", false}} {
		var changed []string
		finished, err := p.Apply(t.Context(), r, step.limit, func(e pluginv1.Event) error {
			if c, ok := e.(pluginv1.Changed); ok {
				changed = append(changed, c.ID)
			}
			return nil
		})
		if err != nil || finished.Error != nil {
			t.Fatal(err, finished.Error)
		}
		if got := strings.Join(changed, " "); got != step.changed || finished.Stopped != step.stopped {
			t.Errorf("limit %d: changed %q, stopped %v", step.limit, got, finished.Stopped)
		}
	}
}

// flighty are the checks whose verdict about a plugin that writes in place depends on the moment.
func flighty() map[string]bool {
	return map[string]bool{"kill": true, "stop": true, "two-at-once": true}
}

// TestConformanceOfTheReleaseBefore: today's kit says of yesterday's plugin what it said then. It is a scripted plugin,
// which takes any field and writes as carelessly as it can, and the kit says so.
func TestConformanceOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	cases, err := conformance.LoadCases("testdata/cases")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), naming.Binary("Noop", provider))
	install(t, before, path)
	var out strings.Builder
	err = conformance.Suite{Binary: path, Cases: cases}.Judge(t.Context(), func(r conformance.Result) {
		if !flighty()[r.Check] {
			fmt.Fprintf(&out, "%s %s: %s\n", r.Case, r.Check, r.Verdict)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "conformance.golden", out.String(), *update)
}
