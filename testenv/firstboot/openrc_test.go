package firstboot

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const initHook = "/usr/libexec/machineadm/init-hook"

// documentedHook returns the init hook that the documentation shows for OpenRC, or else for runit.
func documentedHook(t *testing.T, init nodes.Init) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)```sh "+initHook+"\n(.*?)```\n").FindAllSubmatch(page, -1)
	require.Len(t, found, 2, "the page has other hooks")
	return string(found[map[nodes.Init]int{nodes.OpenRC: 0, nodes.Runit: 1}[init]][1])
}

// TestInitHook: on a node with OpenRC as PID 1, the init hook of the documentation reboots the machine and resumes the run. A
// hook that fails or that others can write ends the run, and its output is for root alone.
func TestInitHook(t *testing.T) {
	t.Parallel()
	dir, hook := binaries(t), documentedHook(t, nodes.OpenRC)
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Bookworm, Init: nodes.OpenRC, Prepare: nodes.InOrder(
		func(root string) error { return install(dir, root) },
		func(root string) error {
			return write(root, "/etc/machineadm/node.yaml",
				noop("before", "touch: [/var/before], reboot: BeforeNext")+noop("after", "touch: [/var/after]"), 0o600)
		},
	)})
	require.Equal(t, "openrc-init\n", n.MustExec(t, "cat", "/proc/1/comm").Stdout)
	bootID := func() string {
		t.Helper()
		return n.MustExec(t, "cat", "/proc/sys/kernel/random/boot_id").Stdout
	}
	before := bootID()
	apply := func(hook, mode string, argv ...string) nodes.Result {
		t.Helper()
		n.MustExec(t, "sh", "-c", `printf %s "$1" >"$2" && chmod "$3" "$2"`, "sh", hook, initHook, mode)
		r, err := n.Exec(t.Context(), append([]string{"machineadm", "apply", "--reboot", "--path", "/etc/machineadm/node.yaml"}, argv...)...)
		require.NoError(t, err)
		return r
	}
	// Without a hook, the run does as under systemd, and its reboot fails.
	r, err := n.Exec(t.Context(), "machineadm", "apply", "--reboot", "--path", "/etc/machineadm/node.yaml")
	require.NoError(t, err)
	assert.Equal(t, report.ExitReboot, r.ExitCode)
	assert.Contains(t, r.Stderr, "the reboot failed: systemctl reboot: ")
	n.MustExec(t, "rm", "-r", kept, resumeUnit, "/var/before", "/var/lib/machineadm", "/run/machineadm")
	const says = "echo c4n4ry-output; echo c4n4ry-errors >&2; exit 7\n"
	for _, c := range []struct {
		name, hook, mode string
		exit             int
		message          string
		changed, waits   bool
	}{
		{"others can write it", hook, "0757", report.ExitUntrusted, initHook + " can be written by everyone", false, false},
		{"no machine ID", "#!/bin/sh\ntest $1 != machine-id || { " + says + " }", "0755", report.ExitState, initHook + " machine-id: exit status 7", false, false},
		{"no resume", strings.Replace(hook, "resume-install)", "resume-install)\n"+says+";;\nnever)", 1), "0755", report.ExitState, initHook + " resume-install: exit status 7", true, false},
		{"no reboot", strings.Replace(hook, "reboot)", "reboot)\n"+says+";;\nnever)", 1), "0755", report.ExitState, "the reboot failed: " + initHook + " reboot: exit status 7", true, true},
	} {
		got := apply(c.hook, c.mode)
		assert.Equal(t, c.exit, got.ExitCode, "%s:\n%s", c.name, got.Stderr)
		assert.Contains(t, got.Stderr, c.message, c.name)
		assert.NotContains(t, got.Stdout+got.Stderr, "c4n4ry", c.name)
		for path, want := range map[string]bool{"/var/before": c.changed, kept: c.waits, "/etc/init.d/machineadm-resume": c.waits} {
			r, err := n.Exec(t.Context(), "test", "-e", path)
			require.NoError(t, err)
			assert.Equal(t, want, r.ExitCode == 0, "%s: %s", c.name, path)
		}
		if c.exit == report.ExitState {
			r := lastReport(t, n)
			assert.Equal(t, report.ExitState, r.ExitCode, c.name)
			assert.Equal(t, report.RunFailed, r.Outcome, c.name)
			last := r.Errors[len(r.Errors)-1]
			assert.NotEmpty(t, last.Details, c.name)
			details := n.MustExec(t, "cat", "/run/machineadm/details.json").Stdout
			assert.Contains(t, details, `c4n4ry-output\nc4n4ry-errors\n`, c.name)
			assert.NotContains(t, n.MustExec(t, "cat", "/run/machineadm/report.json").Stdout, "c4n4ry", c.name)
		}
	}
	require.Equal(t, before, bootID())
	got := apply(hook, "0755", "--log-level", "info")
	require.Equal(t, report.ExitReboot, got.ExitCode, got.Stderr)
	require.Contains(t, got.Stderr, "rebooting; the run resumes after the reboot")
	require.Eventually(t, func() bool {
		if n.Settle(t.Context()) != nil {
			return false
		}
		// The resumed run and the mark of the node's boot are both the last service.
		now, err := n.Exec(t.Context(), "sh", "-c", "cat /proc/sys/kernel/random/boot_id; test ! -e "+kept)
		return err == nil && now.ExitCode == 0 && now.Stdout != before
	}, 2*time.Minute, 100*time.Millisecond)
	after := lastReport(t, n)
	require.Equal(t, report.RunSucceeded, after.Outcome, "%+v", after)
	assert.Equal(t, report.Unchanged, after.Documents[0].Outcome)
	assert.Equal(t, report.Changed, after.Documents[1].Outcome)
	n.MustExec(t, "test", "-s", sentinel)
	gone(t, n, kept, resumeUnit, "/etc/init.d/machineadm-resume", "/etc/runlevels/default/machineadm-resume", "/var/lib/machineadm/reboots.json")
	id := n.MustExec(t, "cat", "/var/lib/dbus/machine-id").Stdout
	assert.Equal(t, id, n.MustExec(t, "cat", "/var/lib/machineadm/machine-id").Stdout)
	assert.Empty(t, n.MustExec(t, "cat", "/etc/machine-id").Stdout)
}
