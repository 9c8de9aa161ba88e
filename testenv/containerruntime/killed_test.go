package containerruntime

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/containerd"
	"github.com/machineadm/machineadm/testenv/tools"
)

// TestKilledDuringTheCheck: the candidates that a killed run leaves, which can hold secrets, are removed by the next one,
// whether it has the same stream or another, of another plugin.
func TestKilledDuringTheCheck(t *testing.T) {
	t.Parallel()
	n := start(t, containerd.V17)
	n.reset(t, nil)
	const sysctl, other = "machineadm-sysctl-plugin-procfs", "/etc/machineadm/other.yaml"
	built := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), built, map[string]string{sysctl: "plugins/sysctl/procfs"}))
	require.NoError(t, n.CopyIn(t.Context(), filepath.Join(built, sysctl), "/usr/libexec/machineadm/"+sysctl, 0o755))
	n.Write(t, other, strings.ReplaceAll(strings.Replace(header, "ContainerRuntime", "Sysctl", 1), "containerd", "procfs")+
		"  parameters: {net.ipv4.ip_forward: \"1\"}\n")
	n.Write(t, stream, header+small)
	// The daemon's own check of a candidate runs until the run is killed.
	n.MustExec(t, "sh", "-c", `chmod 600 `+stream+` `+other+` && mv /usr/bin/containerd /usr/bin/containerd.real && cat >/usr/bin/containerd <<'END'
#!/bin/sh
case "$*" in *machineadm-candidate*) if [ -e /run/hold ]; then touch /run/held; sleep infinity; fi ;; esac
exec containerd.real "$@"
END
chmod 755 /usr/bin/containerd`)
	left := func() string {
		return n.MustExec(t, "sh", "-c", "find / -xdev -name '.*.machineadm-*'").Stdout
	}
	for _, next := range []string{other, stream} {
		n.MustExec(t, "sh", "-c", "touch /run/hold; rm -f /run/held; systemd-run --unit=killed machineadm apply --path "+stream)
		require.Eventually(t, func() bool {
			r, err := n.Exec(t.Context(), "test", "-e", "/run/held")
			return err == nil && r.ExitCode == 0
		}, 2*time.Minute, 50*time.Millisecond)
		require.Contains(t, left(), ".machineadm-candidate")
		n.MustExec(t, "sh", "-c", "systemctl kill --signal=KILL killed.service; rm /run/hold")
		require.Eventually(t, func() bool {
			r, err := n.Exec(t.Context(), "machineadm", "apply", "--path", next)
			return err == nil && r.ExitCode != report.ExitLocked
		}, 2*time.Minute, 50*time.Millisecond)
		assert.Empty(t, left())
		n.MustExec(t, "systemctl", "reset-failed")
	}
	n.apply(t, small)
	assert.Empty(t, left())
}
