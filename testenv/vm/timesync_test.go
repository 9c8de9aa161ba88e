package vm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/timeservers"
)

const (
	timesyncPlugin = "/usr/libexec/machineadm/machineadm-timesync-plugin-"
	timesyncStream = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Timesync
metadata: {name: node}
spec: {servers: [{address: 192.0.2.1}], waitForSync: {timeout: 4m}}
`
	// The server counts by itself, because the daemon sets the clock that it would otherwise serve. It has a network namespace:
	// ntpd binds port 123 of every address, so the second of the two would not start.
	timeServer = `[Service]
Type=exec
ExecStartPre=ip netns add time
ExecStartPre=ip link add time0 type veth peer name time1 netns time
ExecStartPre=ip address add 192.0.2.2/24 dev time0
ExecStartPre=ip link set time0 up
ExecStartPre=ip -n time address add 192.0.2.1/24 dev time1
ExecStartPre=ip -n time link set time1 up
ExecStart=ip netns exec time /usr/local/bin/timeserver -listen 192.0.2.1:123 -off ${OFF}
`
	kernelSynchronized = `timeout 120 sh -c 'until [ "$(timedatectl show -P NTPSynchronized)" = yes ]; do sleep 1; done'`
)

// TestTimesync: a machine boots with a clock that is hours late. One stream sets it, with each daemon. With chronyd the clock is a
// year late, and a source whose certificate is not valid yet is behind the Timesync document.
func TestTimesync(t *testing.T) {
	require.Tier(t, require.VM)
	for provider, daemon := range map[string]timeservers.Daemon{
		"chronyd": timeservers.Chrony, "ntpd": timeservers.NTPsec, "systemd": timeservers.Timesyncd,
	} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			off, layers, last := -6*time.Hour, []nodes.Layer{daemon.Layer()}, file(nodeFile, timesyncStream, 0o600)
			if provider == "chronyd" {
				off, layers, last = -365*24*time.Hour, append(layers, nodes.Nginx), certified(t)
			}
			n := nodes.Boot(t, nodes.Options{
				Suite: nodes.Trixie, VM: true, Layers: layers, Clock: off,
				Prepare: nodes.InOrder(
					programs(t, map[string]string{
						hostPath: "host/cmd/machineadm", timesyncPlugin + provider: "plugins/timesync/" + provider,
						"/usr/local/bin/timeserver": "testenv/timeservers/cmd/timeserver",
						plugin:                      "plugins/sysctl/procfs", sourcePlugin: "plugins/remote-config/http",
					}),
					file("/usr/lib/systemd/system/timeserver.service", timeServer, 0o644),
					last),
			})
			if provider == "chronyd" { // systemd sets a clock that is older than itself to its own age
				off = time.Until(clockOf(t, n)).Round(time.Second)
				beforeItsTime(t, n)
			}
			n.MustExec(t, "systemctl", "set-environment", "OFF="+(-off).String())
			n.MustExec(t, "systemctl", "start", "timeserver")
			assert.WithinDuration(t, time.Now().Add(off), clockOf(t, n), 10*time.Minute)
			began := time.Now()
			expect(t, n, report.ExitOK, "machineadm", "apply", "--path", nodeFile)
			t.Logf("apply took %s", time.Since(began).Round(time.Second))
			assert.WithinDuration(t, time.Now(), clockOf(t, n), 10*time.Minute)
			if provider == "chronyd" {
				assert.Contains(t, n.MustExec(t, "cat", fetchedFile).Stdout, "8191")
			}
			apply(t, n, nodeFile, report.Unchanged)
			if provider != "ntpd" { // which measures the frequency of the clock for many minutes first
				n.MustExec(t, "sh", "-c", kernelSynchronized)
				apply(t, n, nodeFile, report.Unchanged)
			}
		})
	}
}
