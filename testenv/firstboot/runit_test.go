package firstboot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

// supervised makes services of runit: site, which is down, and s6, which supervises another site.
func supervised(root string) error {
	for name, content := range map[string]string{
		"/etc/sv/site/run": "#!/bin/sh\nexec sleep 1001\n", "/etc/sv/site/down": "",
		"/etc/sv/s6/run":   "#!/bin/sh\nexec s6-svscan /etc/s6\n",
		"/etc/s6/site/run": "#!/bin/sh\nexec sleep 1002\n", "/etc/s6/site/down": "",
	} {
		if err := write(root, name, content, 0o755); err != nil {
			return err
		}
	}
	for _, name := range []string{"site", "s6"} {
		if err := os.Symlink("/etc/sv/"+name, filepath.Join(root, "etc/runit/runsvdir/default", name)); err != nil {
			return err
		}
	}
	return nil
}

// TestRunit: on a node with runit as PID 1, what a plugin starts by runit or s6 stays, and what it starts itself ends with its Apply, with a
// warning. A provider that needs systemd says so. The init hook of the documentation resumes the run after a reboot, and nothing is left.
func TestRunit(t *testing.T) {
	t.Parallel()
	dir := binaries(t)
	const chronyd = "machineadm-timesync-plugin-chronyd"
	require.NoError(t, tools.Products(t.Context(), dir, map[string]string{chronyd: "plugins/timesync/chronyd"}))
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Bookworm, Init: nodes.Runit, Prepare: nodes.InOrder(
		func(root string) error { return install(dir, root) },
		func(root string) error {
			data, err := os.ReadFile(filepath.Join(dir, chronyd))
			if err != nil {
				return err
			}
			return write(root, libexec+"/"+chronyd, string(data), 0o755)
		},
		func(root string) error { return write(root, initHook, documentedHook(t, nodes.Runit), 0o755) },
		supervised,
	)})
	require.Equal(t, "runit\n", n.MustExec(t, "cat", "/proc/1/comm").Stdout)
	run := func(exit int, stream string, argv ...string) string {
		t.Helper()
		r, err := n.ExecInput(t.Context(), strings.NewReader(stream), append(append([]string{"machineadm"}, argv...), "--path", "-")...)
		require.NoError(t, err)
		require.Equal(t, exit, r.ExitCode, r.Stdout+r.Stderr)
		return r.Stdout + r.Stderr
	}
	processes := func() string {
		t.Helper()
		return n.MustExec(t, "sh", "-c", "pgrep -a sleep | cut -d' ' -f3 | grep ^100 | sort | xargs").Stdout
	}

	const timesync = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Timesync\nmetadata: {name: site}\nspec: {provider: chronyd, servers: [{address: 192.0.2.1}]}\n"
	assert.Contains(t, run(report.ExitPrecondition, timesync, "plan"),
		"the provider chronyd does not serve this machine: services: not supported on this machine: systemd is not the init system")

	services := noop("sv", `touch: [/var/sv], run: "echo $INIT >/var/init; sv up site"`) +
		noop("s6", `touch: [/var/s6], run: "s6-svc -u /etc/s6/site"`) +
		noop("child", `touch: [/var/child], run: "setsid sleep 1003 >/dev/null 2>&1 & until pgrep -fx \"sleep 1003\"; do :; done"`)
	run(report.ExitOK, services, "apply")
	assert.Equal(t, "runit\n", n.MustExec(t, "cat", "/var/init").Stdout)
	assert.Equal(t, "1001 1002\n", processes())
	r := lastReport(t, n)
	for i, document := range r.Documents {
		if i < 2 {
			assert.Empty(t, document.Warnings, document.Name)
			continue
		}
		require.Len(t, document.Warnings, 1)
		assert.Contains(t, document.Warnings[0], "the process sleep (PID ")
		assert.Contains(t, n.MustExec(t, "machineadm", "status").Stdout, "warning: "+document.Warnings[0])
	}

	bootID := func() string { return n.MustExec(t, "cat", "/proc/sys/kernel/random/boot_id").Stdout }
	before := bootID()
	run(report.ExitReboot, noop("before", "touch: [/var/before], reboot: BeforeNext")+
		noop("after", `touch: [/var/after], run: "sv up site"`), "apply", "--reboot")
	require.Eventually(t, func() bool {
		if n.Settle(t.Context()) != nil {
			return false
		}
		now, err := n.Exec(t.Context(), "sh", "-c", "cat /proc/sys/kernel/random/boot_id; test ! -e "+kept)
		return err == nil && now.ExitCode == 0 && now.Stdout != before
	}, 2*time.Minute, 100*time.Millisecond)
	r = lastReport(t, n)
	require.Equal(t, report.RunSucceeded, r.Outcome, "%+v", r)
	assert.Equal(t, report.Unchanged, r.Documents[0].Outcome)
	assert.Equal(t, report.Changed, r.Documents[1].Outcome)
	assert.Equal(t, "1001\n", processes())
	gone(t, n, kept, resumeUnit, "/etc/sv/machineadm-resume", "/etc/runit/runsvdir/default/machineadm-resume", "/var/lib/machineadm/reboots.json")
	assert.Empty(t, n.MustExec(t, "find", "/etc", "/var", "/run", "/tmp", "-xdev", "-name", ".*machineadm*").Stdout)
}
