package bootstrapdata

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/host/controller/emit"
	"github.com/machineadm/machineadm/host/controller/wrap"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	nodePath = "/etc/machineadm/node.yaml"
	unit     = "machineadm-firstboot.service"
)

// TestIgnition runs Debian's Ignition 2.14 on the files of a node, which has machineadm in /opt as Flatcar does.
func TestIgnition(t *testing.T) {
	t.Parallel()
	n := nodes.Boot(t, nodes.Options{
		Suite: nodes.Bookworm, Layers: []nodes.Layer{nodes.Ignition},
		Prepare: installed(t, "/opt/bin/machineadm", "/opt/machineadm/plugins"),
	})
	text := large(stream(t, true))
	put(t, n, "/run/config.ign", wrapped(t, wrap.Format{Type: "ignition"}, text))
	// Ignition relabels what it wrote, also where there is no SELinux, unless that is said to be off.
	n.MustExec(t, "sh", "-c", "mkdir -p /etc/selinux && printf 'SELINUX=disabled\nSELINUXTYPE=none\n' >/etc/selinux/config && ln -sf /bin/true /usr/local/sbin/setfiles")
	for _, stage := range []string{"fetch", "files"} {
		n.MustExec(t, "env", "IGNITION_CONFIG_FILE=/run/config.ign", "/usr/lib/dracut/modules.d/30ignition/ignition",
			"-platform=file", "-root=/", "-stage="+stage, "-log-to-stdout")
	}
	n.MustExec(t, "systemctl", "preset", unit) // what the first boot of a system does
	runsOnce(t, n, text)
}

// TestCombustion runs the script on the files of a node.
func TestCombustion(t *testing.T) {
	t.Parallel()
	n := nodes.Boot(t, nodes.Options{
		Suite: nodes.Trixie, Prepare: installed(t, "/usr/bin/machineadm", "/usr/libexec/machineadm"),
	})
	text := stream(t, true)
	put(t, n, "/run/script", wrapped(t, wrap.Format{Type: "combustion"}, text))
	n.MustExec(t, "sh", "/run/script")
	runsOnce(t, n, text)
}

// TestPowerCut cuts the power in the middle of the run: the next boot runs it again.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	n := nodes.Boot(t, nodes.Options{
		Suite: nodes.Trixie, NoWait: true, Prepare: installed(t, "/usr/bin/machineadm", "/usr/libexec/machineadm"),
	})
	require.NoError(t, n.Settle(t.Context()))
	put(t, n, "/run/script", wrapped(t, wrap.Format{Type: "combustion"}, slow(t)))
	n.MustExec(t, "sh", "-c", "sh /run/script && sync")
	require.NoError(t, n.Reboot(t.Context()))
	continues(t, n)
}

// TestPowerCutOfCloudInit does the same with cloud-init, which runs a command of the user data once.
//
//machineadm:core
func TestPowerCutOfCloudInit(t *testing.T) {
	t.Parallel()
	continues(t, nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, NoWait: true, Prepare: nodes.InOrder(
		installed(t, "/usr/bin/machineadm", "/usr/libexec/machineadm"), nodes.CloudInitSeed(string(wrapped(t, wrap.Format{}, slow(t)))),
	)}))
}

// slow is a stream that does not end in the first boot.
func slow(t *testing.T) []byte {
	t.Helper()
	text, err := emit.Stream([]emit.Document{noop("slow", `"touch":["/var/first","/var/last"],"apply":"hang","applyUntil":"/var/resumed"`)})
	require.NoError(t, err)
	return text
}

// continues cuts the power while the stream is applied.
func continues(t *testing.T, n *nodes.Node) {
	t.Helper()
	n.MustExec(t, "timeout", "600", "sh", "-c", "until grep -qs file:/var/first /run/machineadm/report.json; do sleep 0.1; done; touch /var/resumed")
	n.Crash()
	require.NoError(t, n.Reboot(t.Context()))
	require.NoError(t, n.Settle(t.Context()))
	n.MustExec(t, "test", "-s", sentinel)
	n.MustExec(t, "test", "-e", "/var/last")
	isAbsent(t, n, nodePath)
}

// runsOnce boots a node with the stream and the unit, checks that the stream is applied over its own reboot and then gone,
// and that the next boot does nothing.
func runsOnce(t *testing.T, n *nodes.Node, text []byte) {
	t.Helper()
	content, mode := read(t, n, nodePath)
	require.Equal(t, string(text), content)
	require.Equal(t, "600 root:root", mode)
	require.Equal(t, "enabled", strings.TrimSpace(n.MustExec(t, "systemctl", "is-enabled", unit).Stdout))
	n.MustExec(t, "systemd-analyze", "verify", "--man=no", "/etc/systemd/system/"+unit)
	require.NoError(t, n.Reboot(t.Context()))
	n.MustExec(t, "test", "-e", "/var/first")
	prepared(t, n, 2)
	isAbsent(t, n, nodePath)
	assert.Equal(t, "0", strings.TrimSpace(n.MustExec(t, "systemctl", "show", "-P", "NFailedUnits").Stdout))
	require.NoError(t, n.Reboot(t.Context()))
	assert.Equal(t, 2, countRuns(t, n))
	assert.Equal(t, "no", strings.TrimSpace(n.MustExec(t, "systemctl", "show", "-P", "ConditionResult", unit).Stdout))
	isAbsent(t, n, sentinel)
}
