package vm

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
	"github.com/machineadm/machineadm/testenv/timeservers"
)

const (
	timesyncPlugin = "/usr/libexec/machineadm/machineadm-timesync-plugin-"
	timesyncStream = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Timesync
metadata: {name: node}
spec: {servers: [{address: 127.0.0.2}], waitForSync: {timeout: 4m, maxOffset: 100ms}}
`
	// The server counts by itself, because the daemon sets the clock that it would otherwise serve.
	timeServer = "[Service]\nType=exec\nExecStart=/usr/local/bin/timeserver -off 6h\n[Install]\nWantedBy=multi-user.target\n"
)

// TestTimesync: a machine boots with a clock that is hours late. One stream sets it, with chronyd and with timesyncd.
func TestTimesync(t *testing.T) {
	needsVM(t)
	const off = -6 * time.Hour
	for provider, daemon := range map[string]timeservers.Daemon{
		"chronyd": timeservers.Chrony, "systemd": timeservers.Timesyncd,
	} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			n := nodes.Boot(t, nodes.Options{
				Suite: nodes.Trixie, VM: true, Layers: []nodes.Layer{daemon.Layer()}, Clock: off,
				Prepare: nodes.InOrder(
					programs(t, map[string]string{
						hostPath: "../../host/cmd/machineadm", timesyncPlugin + provider: "../../plugins/timesync/" + provider,
						"/usr/local/bin/timeserver": "../timeservers/cmd/timeserver",
					}),
					file("/usr/lib/systemd/system/timeserver.service", timeServer, 0o644),
					file(nodeFile, timesyncStream, 0o600)),
			})
			n.MustExec(t, "systemctl", "start", "timeserver")
			assert.WithinDuration(t, time.Now().Add(off), clockOf(t, n), 10*time.Minute)
			began := time.Now()
			expect(t, n, report.ExitOK, "machineadm", "apply", "--path", nodeFile)
			t.Logf("apply took %s", time.Since(began).Round(time.Second))
			assert.WithinDuration(t, time.Now(), clockOf(t, n), 10*time.Minute)
			nodestest.Eventually(t, "the kernel to report a synchronized clock", func() bool {
				got := n.MustExec(t, "timedatectl", "show", "--property=NTPSynchronized", "--value").Stdout
				return strings.TrimSpace(got) == "yes"
			})
			apply(t, n, nodeFile, report.Unchanged)
		})
	}
}
