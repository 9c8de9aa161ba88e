package bootstrapdata

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/controller/emit"
	"github.com/machineadm/machineadm/host/controller/wrap"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	// bootTimeout is long, because cloud-init and the reboots of a run are part of a boot.
	bootTimeout = 4 * time.Minute
	sentinel    = "/run/cluster-api/bootstrap-success.complete"
)

// stream is a stream whose run needs a reboot in the middle, if reboots.
func stream(t *testing.T, reboots bool) []byte {
	t.Helper()
	var further []emit.Document
	if reboots {
		first := noop("first", `"reboot":"BeforeNext","touch":["/var/first"]`)
		first.Before = []string{"Noop/last"}
		further = append(further, first)
	}
	text, err := encoded(further)
	require.NoError(t, err)
	return text
}

// large makes a stream so large that the data has it compressed.
func large(text []byte) []byte {
	return append(text, "#"+strings.Repeat(" larger", 3<<10)+"\n"...)
}

func wrapped(t *testing.T, f wrap.Format, stream []byte) []byte {
	t.Helper()
	data, err := new(wrap.Wrapper).Wrap(f, stream)
	require.NoError(t, err)
	return data.Value
}

// installed puts the product into a root file system: the program at this path, the plugins into a directory.
func installed(t *testing.T, program, plugins string) func(root string) error {
	t.Helper()
	needs.Tier(t, needs.System)
	dir := t.TempDir()
	paths := map[string]string{
		program: "host/cmd/machineadm",
		plugins + "/machineadm-sysctl-plugin-procfs": "plugins/sysctl/procfs",
		plugins + "/machineadm-noop-plugin-test":     "testenv/noop",
	}
	require.NoError(t, tools.Products(t.Context(), dir, paths))
	return func(root string) error {
		for to := range paths {
			if err := needs.CopyProgram(filepath.Join(root, to), filepath.Join(dir, to)); err != nil {
				return err
			}
		}
		return nil
	}
}

// put writes a file in the node.
func put(t *testing.T, n *nodes.Node, to string, content []byte) {
	t.Helper()
	from := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(from, content, 0o600))
	require.NoError(t, n.CopyIn(t.Context(), from, to, 0o600))
}

// read returns a file of the node with its mode and owner.
func read(t *testing.T, n *nodes.Node, path string) (content, mode string) {
	t.Helper()
	data, err := n.CopyOut(t.Context(), path)
	require.NoError(t, err)
	return string(data), strings.TrimSpace(n.MustExec(t, "stat", "-c", "%a %U:%G", path).Stdout)
}

func isAbsent(t *testing.T, n *nodes.Node, path string) {
	t.Helper()
	got, err := n.Exec(t.Context(), "test", "-e", path)
	require.NoError(t, err)
	assert.NotZero(t, got.ExitCode, "%s exists", path)
}

// prepared checks that the last run succeeded, and that there were this many.
func prepared(t *testing.T, n *nodes.Node, runs int) {
	t.Helper()
	data, err := n.CopyOut(t.Context(), "/run/machineadm/report.json")
	require.NoError(t, err, "%s", n.MustExec(t, "journalctl", "--no-pager", "-n", "60").Stdout)
	var r report.Report
	require.NoError(t, json.Unmarshal(data, &r))
	require.Equal(t, report.RunSucceeded, r.Outcome, "%+v", r)
	n.MustExec(t, "test", "-s", sentinel)
	n.MustExec(t, "test", "-e", "/var/last")
	assert.Equal(t, "8191", strings.TrimSpace(n.MustExec(t, "cat", "/proc/sys/net/core/somaxconn").Stdout))
	assert.Equal(t, runs, countRuns(t, n))
}

func countRuns(t *testing.T, n *nodes.Node) int {
	t.Helper()
	return len(strings.Fields(n.MustExec(t, "ls", "/var/lib/machineadm/reports").Stdout))
}
