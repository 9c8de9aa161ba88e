package legacy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// TestRebootOfTheReleaseBefore: today's host requests a reboot that yesterday's plugin requests, and the same
// command resumes after it.
func TestRebootOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	require.Root(t)
	stream := doc("first", "touch: [/var/first], reboot: BeforeNext") + doc("then", "touch: [/var/then], reboot: AfterRun") +
		doc("last", "touch: [/var/last]")
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, Prepare: func(root string) error {
		for plugin, path := range map[string]string{
			"machineadm": "usr/bin/machineadm", before: "usr/libexec/machineadm/machineadm-noop-plugin-test",
		} {
			data, err := os.ReadFile(filepath.Join(built, plugin))
			if err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755); err != nil { //nolint:gosec // a directory of the system
				return err
			}
			if err := os.WriteFile(filepath.Join(root, path), data, 0o755); err != nil { //nolint:gosec // a program
				return err
			}
		}
		return os.WriteFile(filepath.Join(root, "etc/node.yaml"), []byte(stream), 0o600)
	}})
	for _, want := range []struct {
		exit     int
		outcomes string
		reboot   bool // afterwards
	}{
		{report.ExitReboot, "RebootRequired Skipped Skipped", true},
		{report.ExitReboot, "Unchanged Changed Changed", true},
		{report.ExitOK, "Unchanged Unchanged Unchanged", false},
	} {
		got, err := n.Exec(t.Context(), "machineadm", "apply", "--path", "/etc/node.yaml")
		if err != nil {
			t.Fatal(err)
		}
		r := result{code: got.ExitCode, stdout: got.Stdout, stderr: got.Stderr}
		data, err := n.CopyOut(t.Context(), "/run/machineadm/report.json")
		if err == nil {
			err = json.Unmarshal(data, &r.report)
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.code != want.exit || r.outcomes() != want.outcomes {
			t.Fatalf("%q, want exit %d and %q: %s", r.outcomes(), want.exit, want.outcomes, r)
		}
		if want.reboot {
			if err := n.Reboot(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}
