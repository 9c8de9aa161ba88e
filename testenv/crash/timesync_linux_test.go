package crash

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/timeservers"
)

// timeDaemons are the daemons of the providers.
func timeDaemons() map[string]timeservers.Daemon {
	return map[string]timeservers.Daemon{"chronyd": timeservers.Chrony, "ntpd": timeservers.NTPsec, "systemd": timeservers.Timesyncd}
}

// otherDaemon acts as another time daemon, which each run has to stop and to keep from starting.
const otherDaemon = "[Service]\nExecStart=/usr/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"

// timesync prints the state of the time daemons, for the unit $unit: which run and which start at boot, their files, and the
// servers that the daemon uses, which come from the file that it has read.
const timesync = `set -eu
systemctl show --property=Id,ActiveState,UnitFileState $unit ntpd-rs.service | sed '/./s/^/state /'
find /etc/chrony /etc/ntpsec /etc/default/ntpsec /etc/systemd 2>/dev/null -printf 'state %p %m %u %l\n' \
	-type f -exec sha256sum {} + | sed 's/^\([0-9a-f]\)/state \1/' | sort
case $unit in
chrony.service) chronyc -n -c sources | cut -d, -f3 ;;
ntpsec.service) ntpq -pn | tail -n +3 | cut -c2- | cut -d' ' -f1 ;;
*) timedatectl show-timesync --property=SystemNTPServers ;;
esac | sed 's/^/state /'
`

// TestTimesync disturbs runs that replace the configuration of a time daemon, and stop another one.
func TestTimesync(t *testing.T) {
	first := 1 << 33 // no number of the trees and of the first node
	providers := slices.Sorted(maps.Keys(timeDaemons()))
	if *rounds < 125 {
		providers = providers[:1]
	}
	for _, provider := range providers {
		daemon := timeDaemons()[provider]
		t.Run(provider, func(t *testing.T) {
			network := nodes.NewNetwork(t, "one", "two", "node")
			for _, name := range []string{"one", "two"} {
				timeservers.Respond(t, network.ListenPacket(t, name, 123), timeservers.Correct)
			}
			const header = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Timesync\nmetadata: {name: node}\nspec: "
			address := func(name string) string { return "{address: " + network.Address(name).String() + "}" }
			const earlierFile = "/etc/machineadm/earlier.yaml"
			o := daemon.Options(nodes.Trixie)
			o.Network, o.Hostname = network, "node"
			o.Prepare = nodes.InOrder(o.Prepare, func(root string) error {
				return install(root, "/usr/lib/systemd/system/ntpd-rs.service", []byte(otherDaemon), 0o644)
			})
			m := bootMachine(t, o, map[string]string{
				earlierFile: header + fmt.Sprintf("{provider: %s, servers: [%s]}\n", provider, address("one")),
				nodeFile:    header + fmt.Sprintf("{provider: %s, servers: [%s, %s]}\n", provider, address("two"), address("one")),
				otherFile:   otherStream,
			}, timesyncPlugin+provider)
			m.values = "unit=" + string(daemon) + ".service\n" + timesync
			for _, way := range [][2]string{{earlierFile, nodeFile}, {nodeFile, earlierFile}} {
				m.campaign(t, first, way[0], way[1])
				first += timesyncRounds()
			}
		})
	}
}

// campaign disturbs runs that lead from one stream to another, on a machine on which the other daemon runs. Its rounds have
// numbers from first on.
func (m *machine) campaign(t *testing.T, first int, from, to string) {
	t.Helper()
	m.stream = to
	m.reset = fmt.Sprintf(`set -eu
systemctl reset-failed
%s apply --path %s --plugin-dir %s >/dev/null
rm -r /etc/systemd/system/ntpd-rs.service.d
systemctl daemon-reload
systemctl enable --quiet --now ntpd-rs.service
`, hostBinary, from, m.mark)
	m.MustExec(t, "sh", "-c", m.reset)
	want, calm := m.undisturbed(t)
	for i := range timesyncRounds() {
		t.Run(fmt.Sprintf("%04d", i), func(t *testing.T) {
			round(t, planned(first+i), calm, func(a attack, calm measure) (bool, time.Duration) {
				return m.crash(t, a, calm, want, i%2 == 0)
			})
		})
	}
	t.Logf("-seed %d: an undisturbed run takes %v", *seed, calm)
}
