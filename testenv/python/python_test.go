// Package python proves that a plugin needs no Go: a vendor's plugin in Python, written from contract/SPEC.md and
// plugin.proto alone, with nothing but packages of Debian, is judged by the kit and driven by the host.
//
// All of it happens in a node: the machine that runs the tests needs no Python.
package python

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/conformance"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	plugin  = "machineadm-apt-repository-plugin-deb822"
	libexec = "/usr/libexec/machineadm/"
	source  = "/usr/src/machineadm-apt-repository"
	proto   = "../../contract/pluginv1/pb/plugin.proto"
)

// debian is what the plugin needs of Debian, and its build.
func debian() nodes.Layer {
	return nodes.Layer{Packages: []string{"python3-grpcio", "python3-protobuf", "protobuf-compiler", "libprotobuf-dev"}}
}

// built is where TestMain puts the host and the kit; a test binary has no other way to hand something to its tests.
var built string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "machineadm-python-")
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

func build(dir string) error {
	for name, pkg := range map[string]string{
		"machineadm": "../../host/cmd/machineadm", "machineadm-conformance": "../../contract/conformance/cmd/machineadm-conformance",
	} {
		c := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, name), pkg)
		c.Env = append(os.Environ(), "CGO_ENABLED=0") // the node has its own C library
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
		}
	}
	return nil
}

// boot boots a node in which the host, the kit and the plugin are installed, the plugin by its own build.
func boot(t *testing.T, suite nodes.Suite, stream string) *nodes.Node {
	t.Helper()
	require.Root(t)
	n := nodes.Boot(t, nodes.Options{Suite: suite, Layers: []nodes.Layer{debian()}, Prepare: func(root string) error {
		return errors.Join(
			lay(built, filepath.Join(root, "usr/bin")),
			lay("plugin", filepath.Join(root, source)),
			lay(filepath.Dir(proto), filepath.Join(root, source, "published")),
			lay("testdata/conformance", filepath.Join(root, source, "cases")),
			os.MkdirAll(filepath.Join(root, "etc/machineadm"), 0o755), //nolint:gosec // a directory of the system
			os.WriteFile(filepath.Join(root, "etc/machineadm/node.yaml"), []byte(stream), 0o600),
		)
	}})
	n.MustExec(t, source+"/install.sh", source+"/published/plugin.proto")
	return n
}

// lay copies the files and links below a directory into another one. What can be run here can be run there.
func lay(from, to string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		at := filepath.Join(to, below)
		switch {
		case d.IsDir():
			return os.MkdirAll(at, 0o755) //nolint:gosec // sources
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			return os.Symlink(target, at)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(at, data, info.Mode().Perm())
	})
}

// TestConformance: the kit finds nothing, and each of its checks judges a case.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, suite := range nodes.Suites() {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			n := boot(t, suite, "")
			got, err := n.Exec(t.Context(), "machineadm-conformance",
				"--plugin", libexec+plugin, "--cases", source+"/cases", "-o", "json")
			if err != nil {
				t.Fatal(err)
			}
			var kit struct{ Results []conformance.Result }
			if err := json.Unmarshal([]byte(got.Stdout), &kit); err != nil {
				t.Fatalf("%v: exit %d\n%s%s", err, got.ExitCode, got.Stdout, got.Stderr)
			}
			if got.ExitCode != 0 {
				t.Errorf("exit %d: %s", got.ExitCode, got.Stderr)
			}
			judged, cases, seconds := map[string]bool{}, map[string]bool{}, 0.0
			for _, r := range kit.Results {
				cases[r.Case] = true
				seconds += r.Seconds
				judged[r.Check] = judged[r.Check] || r.Verdict != conformance.NotApplicable
				if r.Verdict == conformance.Fail {
					t.Errorf("%s/%s: %s [SPEC %s]", r.Case, r.Check, r.Reason, r.Clause)
				}
			}
			for _, check := range conformance.Checks() {
				if !judged[check.Name] {
					t.Errorf("%s judges no case", check.Name)
				}
			}
			if len(cases) < 5 {
				t.Errorf("%d cases: too little is judged", len(cases))
			}
			t.Logf("%d cases, %d results in %.0f s", len(cases), len(kit.Results), seconds)
		})
	}
}

// TestStartedByAPerson: without the cookie it says what it is.
func TestStartedByAPerson(t *testing.T) {
	t.Parallel()
	n := boot(t, nodes.Bookworm, "")
	got, err := n.Exec(t.Context(), libexec+plugin)
	if err != nil {
		t.Fatal(err)
	}
	if got.ExitCode != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, "This is a plugin") {
		t.Errorf("%+v", got)
	}
}
