// Package foreign runs plugins that are not written in Go in booted nodes: on each the conformance kit and the host.
package foreign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/conformance"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	// Stream is where Boot puts the stream.
	Stream = "/etc/machineadm/node.yaml"
	// Cases is where Boot puts the conformance cases.
	Cases = "/usr/src/cases"
)

// Programs are built once for the tests of a package: the host and the kit.
type Programs struct{ dir string }

// Host is the program machineadm.
func (p *Programs) Host() string { return filepath.Join(p.dir, "machineadm") }

// Main builds the programs, runs the tests, and returns the exit code of the test binary.
func Main(m *testing.M, programs *Programs) int {
	if !require.Runs(require.System) {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "machineadm-foreign-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := 1
	if err := build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		programs.dir = dir
		code = m.Run()
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func build(dir string) error {
	sources := map[string]string{}
	for _, source := range []string{"host/cmd/machineadm", "contract/conformance/cmd/machineadm-conformance"} {
		sources[path.Base(source)] = source
	}
	return tools.Products(context.Background(), dir, sources)
}

// Plugin is a plugin that is installed in nodes.
type Plugin struct {
	Programs *Programs
	// Path is where it is installed.
	Path string
	// Layer has the Debian packages that it needs.
	Layer nodes.Layer
	// Install puts its files below the root of a node.
	Install func(root string) error
	// Cases is the folder of its conformance cases.
	Cases string
}

// Node is a booted node with a plugin.
type Node struct {
	*nodes.Node
	plugin Plugin
	// canary is a secret of the stream, which nothing shows; empty for none.
	canary string
}

// Boot boots a node with the plugin, the programs, and the stream in the file Stream. canary is the secret of the stream.
func (p Plugin) Boot(t *testing.T, suite nodes.Suite, stream, canary string) *Node {
	t.Helper()
	require.Root(t)
	n := nodes.Boot(t, nodes.Options{Suite: suite, Layers: []nodes.Layer{p.Layer}, Prepare: func(root string) error {
		return errors.Join(
			Copy(p.Programs.dir, filepath.Join(root, "usr/bin")),
			Copy(p.Cases, filepath.Join(root, Cases)),
			p.Install(root),
			os.MkdirAll(filepath.Join(root, filepath.Dir(Stream)), 0o755), //nolint:gosec // a directory of the system
			os.WriteFile(filepath.Join(root, Stream), []byte(stream), 0o600),
		)
	}})
	return &Node{Node: n, plugin: p, canary: canary}
}

// Copy copies the files and links below a directory into another one, with their permissions.
func Copy(from, to string) error {
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

// Conforms runs the kit: nothing fails, and each check applies to at least one case, except four:
// the plugins have neither the capability files nor a kind of machineadm, and their cases have no stand-ins of commands.
func (n *Node) Conforms(t *testing.T) {
	t.Helper()
	got, err := n.Exec(t.Context(), "machineadm-conformance", "--plugin", n.plugin.Path, "--cases", Cases, "-o", "json")
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
	applied, names, seconds := map[string]bool{}, map[string]bool{}, 0.0
	for _, r := range kit.Results {
		names[r.Case] = true
		seconds += r.Seconds
		applied[r.Check] = applied[r.Check] || r.Status != conformance.NotApplicable
		if r.Status == conformance.Fail {
			t.Errorf("%s/%s: %s [SPEC %s]", r.Case, r.Check, r.Reason, r.Clause)
		}
	}
	for check, is := range applied {
		if !is && !slices.Contains([]string{"files", "fields", "kind", "live"}, check) {
			t.Errorf("%s applies to no case", check)
		}
	}
	if len(names) < 5 || len(applied) < 15 {
		t.Errorf("only %d cases and %d checks", len(names), len(applied))
	}
	t.Logf("%d cases, %d results in %.0f s", len(names), len(kit.Results), seconds)
}

// Host runs machineadm and expects an exit code.
func (n *Node) Host(t *testing.T, exit int, args ...string) nodes.Result {
	t.Helper()
	got, err := n.ExecInput(t.Context(), nil, append([]string{"machineadm"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	if got.ExitCode != exit {
		t.Fatalf("machineadm %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got.ExitCode, exit, got.Stdout, got.Stderr)
	}
	if n.canary != "" && strings.Contains(got.Stdout+got.Stderr, n.canary) {
		t.Errorf("machineadm %s shows the secret:\n%s%s", strings.Join(args, " "), got.Stdout, got.Stderr)
	}
	return got
}

// Outcomes returns a line for each document of the last report, and one for each of its warnings.
func (n *Node) Outcomes(t *testing.T) string {
	t.Helper()
	data, err := n.CopyOut(t.Context(), "/run/machineadm/report.json")
	if err != nil {
		t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range r.Documents {
		out = append(out, fmt.Sprintf("%s/%s (%s) %s", d.Kind, d.Name, d.Provider, d.Outcome))
		for _, w := range d.Warnings {
			out = append(out, "warning "+w)
		}
	}
	return strings.Join(out, "\n")
}

// KeepsSecret checks that the canary is in these files and in no other, and that the journal does not contain it.
func (n *Node) KeepsSecret(t *testing.T, files ...string) {
	t.Helper()
	n.MustExec(t, "sh", "-c", "journalctl --no-pager >/run/journal")
	got := n.MustExec(t, "sh", "-c", `grep -rlsF -- "$1" /etc /run /var /tmp /root /home | sort`, "sh", n.canary).Stdout
	if want := strings.Join(files, "\n") + "\n"; got != want {
		t.Errorf("the secret is in\n%swant\n%s", got, want)
	}
}
