package firstboot

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	outbox      = "/var/lib/machineadm/outbox.json"
	reportUnits = "/etc/systemd/system/machineadm-report."
	sourceName  = "machineadm-remote-configuration-provider-test"
	// reportTries bounds the tries: the timer asks every 30 s, and a pause has 36 s at most after a boot.
	reportTries = 3 * time.Minute
)

// reporting is a stream whose report goes to the scripted source.
func reporting(more string) string {
	return "---\napiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: ReportTarget\nmetadata: {name: home}\n" +
		"spec: {provider: test, uri: test://home, providerConfig: {token: {value: " + canary + "}}}\n" + more
}

// TestReport: the destination is away until the file /var/up exists. A timer tries again, also after a reboot, and leaves nothing.
func TestReport(t *testing.T) {
	t.Parallel()
	dir := binaries(t)
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, Prepare: nodes.InOrder(
		func(root string) error { return install(dir, root) },
		func(root string) error {
			program, err := os.ReadFile(filepath.Join(dir, "machineadm-noop-plugin-test"))
			if err != nil {
				return err
			}
			if err := write(root, libexec+"/"+sourceName, string(program), 0o755); err != nil {
				return err
			}
			return write(root, libexec+"/"+sourceName+".script",
				`{"source": {"reports": "/var/reports", "log": "/var/source.log", "report": {"answer": "retry", "until": "/var/up"}}}`, 0o600)
		},
		seeded(reporting(noop("a", "touch: [/var/a], reboot: BeforeNext")+noop("b", "touch: [/var/b]"))),
	)})
	require.Equal(t, report.RunSucceeded, lastReport(t, n).Outcome)
	n.MustExec(t, "test", "-s", sentinel)
	calls := strings.Count(n.MustExec(t, "cat", "/var/source.log").Stdout, "report test://home\n")
	assert.GreaterOrEqual(t, calls, 2, "before the reboot, and at the end")
	assert.Equal(t, "600 root", strings.TrimSpace(n.MustExec(t, "stat", "-c", "%a %U", outbox).Stdout))
	assert.Contains(t, n.MustExec(t, "machineadm", "status").Stdout, "report waits to be sent since ")
	timer := func() string {
		got, err := n.Exec(t.Context(), "systemctl", "is-active", "machineadm-report.timer")
		require.NoError(t, err)
		return strings.TrimSpace(got.Stdout)
	}
	assert.Equal(t, "active", timer())
	n.MustExec(t, "systemd-analyze", "verify", "--man=no", "machineadm-report.service", "machineadm-report.timer")
	require.NoError(t, n.Reboot(t.Context()))
	assert.Equal(t, "active", timer(), "after a boot without a run")

	n.MustExec(t, "touch", "/var/up")
	deadline := time.Now().Add(reportTries)
	for there := true; there; {
		got, err := n.Exec(t.Context(), "test", "-e", outbox)
		require.NoError(t, err)
		if there = got.ExitCode == 0; there {
			require.True(t, time.Now().Before(deadline), "the report was not delivered: %s",
				n.MustExec(t, "journalctl", "--no-pager", "-u", "machineadm-report.service", "-u", "machineadm-report.timer").Stdout)
			n.MustExec(t, "sleep", "1")
		}
	}
	lines := strings.Split(strings.TrimSpace(n.MustExec(t, "cat", "/var/reports").Stdout), "\n")
	require.Len(t, lines, 1, "of two runs, the newer report")
	var arrived struct {
		Sequence uint64
		Report   report.Report
	}
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &arrived))
	assert.Equal(t, report.RunSucceeded, arrived.Report.Outcome)
	assert.Equal(t, fmt.Sprintln(arrived.Sequence), n.MustExec(t, "cat", "/var/lib/machineadm/report-sequence").Stdout)
	for time.Now().Before(deadline) && timer() == "active" { // the service removes it after the report
		n.MustExec(t, "sleep", "0.2")
	}
	n.MustExec(t, "sh", "-c", "while systemctl is-active --quiet machineadm-report.service; do sleep 0.2; done")
	gone(t, n, outbox, reportUnits+"service", reportUnits+"timer", "/etc/systemd/system/timers.target.wants/machineadm-report.timer")
	assert.NotEqual(t, "active", timer())
	assert.Equal(t, "running", strings.TrimSpace(n.MustExec(t, "systemctl", "is-system-running").Stdout))
	found, err := n.Exec(t.Context(), "grep", "-rlI", canary, "/var/lib/machineadm", "/run", "/etc", "/var/log")
	require.NoError(t, err)
	assert.Equal(t, 1, found.ExitCode, "the secret of the destination is left: %s", found.Stdout)
	log := n.MustExec(t, "journalctl", "--no-pager", "-u", "machineadm-report.service").Stdout
	assert.Contains(t, log, "the report is delivered")
	assert.NotContains(t, log, canary)
	assert.NotContains(t, log, "Failed with result")
}
