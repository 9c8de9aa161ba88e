// Package vm proves on virtual machines what a container cannot show, because it shares the kernel: vm.* and kernel.*
// parameters, modules, the clock, and a power cut that loses what was never written to the disk.
//
// The machines are emulated in software, which takes a minute where a container takes a second: make test-vm runs this
// package, make test does not.
package vm

//machineadm:tier vm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	sentinel = "/run/cluster-api/bootstrap-success.complete"
	hostPath = "/usr/bin/machineadm"
	plugin   = "/usr/libexec/machineadm/machineadm-sysctl-plugin-procfs"
)

// product builds the host and the plugin, and returns the options that install them like a package.
func product(t *testing.T) func(root string) error {
	t.Helper()
	return programs(t, map[string]string{hostPath: "host/cmd/machineadm", plugin: "plugins/sysctl/procfs"})
}

// programs builds packages, by where they are installed.
func programs(t *testing.T, sources map[string]string) func(root string) error {
	t.Helper()
	dir := t.TempDir()
	names := map[string]string{}
	for at, source := range sources {
		names[filepath.Base(at)] = source
	}
	if err := tools.Products(t.Context(), dir, names); err != nil {
		t.Fatal(err)
	}
	return func(root string) error {
		for at := range sources {
			data, err := os.ReadFile(filepath.Join(dir, filepath.Base(at)))
			if err != nil {
				return err
			}
			if err := write(root, at, string(data), 0o755); err != nil {
				return err
			}
		}
		return nil
	}
}

func write(root, path, content string, mode os.FileMode) error {
	at := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.WriteFile(at, []byte(content), mode)
}

// file prepares one file.
func file(path, content string, mode os.FileMode) func(root string) error {
	return func(root string) error { return write(root, path, content, mode) }
}

// expect runs a command that must end with this code.
func expect(t *testing.T, n *nodes.Node, code int, argv ...string) nodes.Result {
	t.Helper()
	r, err := n.Exec(t.Context(), argv...)
	if err != nil {
		t.Fatal(err)
	}
	if r.ExitCode != code {
		t.Fatalf("%q: exit %d, want %d\nstdout: %s\nstderr: %s", argv, r.ExitCode, code, r.Stdout, r.Stderr)
	}
	return r
}

// apply applies a stream and compares the report with the exit code and the expected outcome of every document.
func apply(t *testing.T, n *nodes.Node, path string, every report.Outcome) report.Report {
	t.Helper()
	expect(t, n, report.ExitOK, "machineadm", "apply", "--path", path)
	r := lastReport(t, n)
	if r.Outcome != report.RunSucceeded || r.ExitCode != report.ExitOK || len(r.Documents) == 0 {
		t.Errorf("report: %+v", r)
	}
	for _, d := range r.Documents {
		if d.Outcome != every {
			t.Errorf("document %s is %s, want %s: %+v", d.Name, d.Outcome, every, d)
		}
	}
	n.MustExec(t, "test", "-s", sentinel)
	return r
}

func lastReport(t *testing.T, n *nodes.Node) report.Report {
	t.Helper()
	data, err := n.CopyOut(t.Context(), "/run/machineadm/report.json")
	if err != nil {
		t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatalf("%v:\n%s", err, data)
	}
	return r
}

// live compares kernel parameters and modules with the kernel's.
func live(t *testing.T, n *nodes.Node, values map[string]string, modules ...string) {
	t.Helper()
	for key, want := range values {
		if got := strings.Join(strings.Fields(n.MustExec(t, "cat", "/proc/sys/"+key).Stdout), " "); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	loaded := "\n" + n.MustExec(t, "cat", "/proc/modules").Stdout
	for _, m := range modules {
		if !strings.Contains(loaded, "\n"+m+" ") {
			t.Errorf("module %s is not in /proc/modules", m)
		}
	}
}
