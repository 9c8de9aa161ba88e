package foreign

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// OpenNTPD tests a provider of Timesync for OpenNTPD on a node with OpenRC as PID 1: the host chooses it by itself, and the daemon outlives
// the run. Without control groups, in which it can, nothing is changed. host is the program machineadm; install puts the plugin below the root
// of the node, and build, if there is one, builds it there.
func OpenNTPD(t *testing.T, host string, install func(root string) error, build func(n *nodes.Node)) {
	t.Helper()
	const stream = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Timesync
metadata: {name: site}
spec: {servers: [{address: ADDRESS}]}
`
	n := nodes.Boot(t, nodes.Options{
		Suite: nodes.Bookworm, OpenRC: true, Layers: []nodes.Layer{nodes.OpenNTPD, nodes.PythonGRPC},
		Prepare: func(root string) error {
			if err := CopyFile(host, filepath.Join(root, "usr/bin/machineadm")); err != nil {
				return err
			}
			return install(root)
		},
	})
	if build != nil {
		build(n)
	}
	apply := func(address string) (int, string) {
		t.Helper()
		got, err := n.ExecInput(t.Context(), strings.NewReader(strings.Replace(stream, "ADDRESS", address, 1)), "machineadm", "apply", "--path", "-")
		require.NoError(t, err)
		return got.ExitCode, got.Stdout + got.Stderr
	}
	processes := func() string { return n.MustExec(t, "pgrep", "ntpd").Stdout }
	code, text := apply("192.0.2.1")
	require.Equal(t, report.ExitPrecondition, code, text)
	assert.Contains(t, text, "hint: mount them: mount -t cgroup2 none /sys/fs/cgroup")
	n.MustExec(t, "mount", "-t", "cgroup2", "none", "/sys/fs/cgroup")
	code, text = apply("192.0.2.1")
	require.Equal(t, report.ExitOK, code, text)
	assert.NotContains(t, text, "warning", "a process that the run ends is a warning")
	group := n.MustExec(t, "sh", "-c", "cat /proc/$(pgrep -o ntpd)/cgroup").Stdout
	assert.Contains(t, group, "/openrc.openntpd")
	assert.Equal(t, "server 192.0.2.1\n", n.MustExec(t, "cat", "/etc/openntpd/ntpd.conf").Stdout)
	before := processes()
	code, text = apply("192.0.2.1")
	require.Equal(t, report.ExitOK, code, text)
	assert.Contains(t, text, "1 unchanged")
	assert.Equal(t, before, processes(), "the daemon was not restarted")
	code, text = apply("192.0.2.2")
	require.Equal(t, report.ExitOK, code, text)
	assert.NotEqual(t, before, processes(), "the daemon has its new configuration")
}

// CopyFile copies a program; the directories above are made.
func CopyFile(from, to string) error {
	data, err := os.ReadFile(filepath.Clean(from))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // a directory of the system
		return err
	}
	return os.WriteFile(to, data, 0o755) //nolint:gosec // a program
}
