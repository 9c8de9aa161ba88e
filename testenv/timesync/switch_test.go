package timesync

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/timeservers"
)

// repack makes the packages again that a node has and another one lacks ($1: the packages of the other one), with their maintainer
// scripts. The new ones do not conflict with each other.
const repack = `set -eu
mkdir -p /root/packages && cd /root
for p in $(dpkg-query -W -f '${Package}\n' | grep -vxF "$1"); do
	mkdir -p $p/DEBIAN
	dpkg-query -s $p | sed "/^\(Status\|Provides\|Conflicts\|Replaces\|Breaks\):/d" |
		sed "/^Conffiles:/,/^[^ ]/{/^Conffiles:/d; /^ /d}" >$p/DEBIAN/control
	for f in preinst postinst prerm postrm conffiles triggers templates config; do
		for from in /var/lib/dpkg/info/$p.$f /var/lib/dpkg/info/$p:*.$f; do
			if [ -e $from ]; then cp $from $p/DEBIAN/$f; fi
		done
	done
	dpkg -L $p | while read -r f; do
		if [ -L "$f" ] || [ -f "$f" ]; then cp -a --parents "$f" $p; fi
	done
	dpkg-deb -Znone -b $p packages >/dev/null
done
tar -cf packages.tar packages`

// packages returns an archive with the packages of each daemon, for nodes that have another one.
func packages(t *testing.T, suite nodes.Suite, of ...timeservers.Daemon) map[timeservers.Daemon]string {
	t.Helper()
	const installed = `dpkg-query -W -f '${Package}\n'`
	dir, archives := t.TempDir(), map[timeservers.Daemon]string{}
	base := nodes.Boot(t, nodes.Options{Suite: suite}).MustExec(t, "sh", "-c", installed).Stdout
	for _, daemon := range of {
		n := nodes.Boot(t, daemon.Options(suite))
		n.MustExec(t, "sh", "-c", repack, "sh", base)
		data, err := n.CopyOut(t.Context(), "/root/packages.tar")
		require.NoError(t, err)
		require.NoError(t, n.Stop(t.Context()))
		archives[daemon] = filepath.Join(dir, string(daemon)+".tar")
		require.NoError(t, os.WriteFile(archives[daemon], data, 0o600))
	}
	return archives
}

// install installs packages, whose scripts enable and start the daemon.
func (n node) install(t *testing.T, archive string) {
	t.Helper()
	require.NoError(t, n.CopyIn(t.Context(), archive, "/root/packages.tar", 0o600))
	n.sh(t, `cd /root && rm -rf packages && tar -xf packages.tar &&
		DEBIAN_FRONTEND=noninteractive UCF_FORCE_CONFFOLD=1 dpkg --force-confold -i packages/*.deb`)
}

// named is a specification that names the provider.
func named(d timeservers.Daemon) string {
	return "{provider: " + provider(d) + ", servers: [{address: time}], waitForSync: {timeout: 1m}}"
}

// TestSwitch: exactly one daemon runs, whichever are installed and whatever enables them.
func TestSwitch(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	const suite = nodes.Trixie
	network := nodes.NewNetwork(t, "time", "all", "replaced")
	timeservers.Chronyd(t, network, "time", timeservers.Options{})
	archives := packages(t, suite, timeservers.Daemons()...)
	t.Run("all installed", func(t *testing.T) {
		t.Parallel()
		n := start(t, suite, timeservers.Chrony, network, "all")
		n.install(t, archives[timeservers.NTPsec])
		n.install(t, archives[timeservers.Timesyncd])
		for _, daemon := range []timeservers.Daemon{timeservers.Chrony, timeservers.NTPsec, timeservers.Timesyncd, timeservers.Chrony} {
			n.daemon = daemon
			spec := named(daemon)
			n.apply(t, spec)
			n.follows(t, network, "time")
			for _, other := range timeservers.Daemons() {
				const reason = " runs in its place"
				text := n.sh(t, "systemctl cat "+string(other))
				if other == daemon {
					require.NotContains(t, text, reason)
				} else {
					require.Contains(t, text, "zz-machineadm-off.conf")
					require.Contains(t, text, string(daemon)+".service"+reason)
				}
			}
			for _, enabling := range []string{"systemctl preset-all", "timedatectl set-ntp true"} {
				n.sh(t, enabling)
				n.follows(t, network, "time")
			}
			require.NoError(t, n.Reboot(t.Context()))
			n.follows(t, network, "time")
			n.unchanged(t, spec)
		}
	})
	t.Run("replaced", func(t *testing.T) {
		t.Parallel()
		n := start(t, suite, timeservers.Chrony, network, "replaced")
		n.apply(t, oneStream)
		for _, daemon := range []timeservers.Daemon{timeservers.NTPsec, timeservers.Timesyncd, timeservers.Chrony} {
			n.sh(t, "dpkg --remove "+string(n.daemon)) // its configuration stays
			n.install(t, archives[daemon])
			gone := n.daemon
			n.daemon = daemon
			// The host keeps the provider that it chose.
			said := n.refused(t, oneStream, report.ExitPrecondition)
			require.Contains(t, said, string(gone)+".service is not installed")
			require.Contains(t, said, "set spec.provider: "+provider(daemon)+" for "+string(daemon)+".service, which is installed")
			n.apply(t, named(daemon))
			n.follows(t, network, "time")
			require.NoError(t, n.Reboot(t.Context()))
			n.follows(t, network, "time")
		}
	})
}
