package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/conformance"
	"github.com/machineadm/machineadm/contract/report"
	tiers "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

const binary = "machineadm-timesync-plugin-openntpd"

func TestConformance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), dir, map[string]string{binary: "testenv/foreign/openntpd"}))
	conformance.Run(t, filepath.Join(dir, binary), "testdata/conformance")
}

const stream = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Timesync
metadata: {name: site}
spec: {servers: [{address: 192.0.2.1}]}
`

// TestOpenRC: on a node with OpenRC as PID 1 the host chooses the provider by itself, and the daemon outlives the run. Without
// control groups, in which it can, nothing is changed.
func TestOpenRC(t *testing.T) {
	t.Parallel()
	tiers.Root(t)
	dir := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), dir, map[string]string{
		binary: "testenv/foreign/openntpd", "machineadm": "host/cmd/machineadm",
	}))
	n := nodes.Boot(t, nodes.Options{
		Suite: nodes.Bookworm, OpenRC: true, Layers: []nodes.Layer{nodes.OpenNTPD},
		Prepare: func(root string) error {
			for name, at := range map[string]string{"machineadm": "usr/bin", binary: "usr/libexec/machineadm"} {
				data, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					return err
				}
				if err := os.MkdirAll(filepath.Join(root, at), 0o755); err != nil { //nolint:gosec // a directory of the system
					return err
				}
				if err := os.WriteFile(filepath.Join(root, at, name), data, 0o755); err != nil { //nolint:gosec // a program
					return err
				}
			}
			return os.WriteFile(filepath.Join(root, "etc/node.yaml"), []byte(stream), 0o600)
		},
	})
	apply := func() (int, string) {
		got, err := n.Exec(t.Context(), "machineadm", "apply", "--path", "/etc/node.yaml")
		require.NoError(t, err)
		return got.ExitCode, got.Stdout + got.Stderr
	}
	code, text := apply()
	require.Equal(t, report.ExitPrecondition, code, text)
	assert.Contains(t, text, "hint: mount them: mount -t cgroup2 none /sys/fs/cgroup")
	n.MustExec(t, "mount", "-t", "cgroup2", "none", "/sys/fs/cgroup")
	code, text = apply()
	require.Equal(t, report.ExitOK, code, text)
	assert.NotContains(t, text, "warning", "a process that the run ends is a warning")
	group := n.MustExec(t, "sh", "-c", "cat /proc/$(pgrep -o ntpd)/cgroup").Stdout
	assert.Contains(t, group, "/openrc.openntpd")
	assert.Equal(t, "server 192.0.2.1\n", n.MustExec(t, "cat", "/etc/openntpd/ntpd.conf").Stdout)
	before := n.MustExec(t, "pgrep", "ntpd").Stdout
	code, text = apply()
	require.Equal(t, report.ExitOK, code, text)
	assert.Contains(t, text, "1 unchanged")
	assert.Equal(t, before, n.MustExec(t, "pgrep", "ntpd").Stdout, "the daemon was not restarted")
}
