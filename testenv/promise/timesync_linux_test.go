package promise_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// timeDaemon is a time daemon as a package installs it, with its provider.
type timeDaemon struct {
	provider, unit, service string
	files                   map[string]string
}

func timeDaemons() []timeDaemon {
	return []timeDaemon{
		{"chronyd", "chrony.service", "/usr/sbin/chronyd", map[string]string{
			"etc/chrony/chrony.conf": "confdir /etc/chrony/conf.d\npool 2.debian.pool.ntp.org iburst\nsourcedir /run/chrony-dhcp\nrtcsync\nmakestep 1 3\n",
		}},
		{"ntpd", "ntpsec.service", "/usr/sbin/ntpd", map[string]string{
			"etc/ntpsec/ntp.conf": "tos minclock 4 minsane 3\npool 0.debian.pool.ntp.org iburst\nrestrict 127.0.0.1\n",
			"etc/default/ntpsec":  "NTPD_OPTS=\"-g\"\nIGNORE_DHCP=\"\"\n",
		}},
		{"systemd", "systemd-timesyncd.service", "/usr/lib/systemd/systemd-timesyncd", map[string]string{
			"etc/systemd/timesyncd.conf": "[Time]\n#NTP=\n",
		}},
	}
}

// timeDaemons installs some of the time daemons in the image, and leaves something there that a document may meet.
func (c *mixed) timeDaemons(t *testing.T, r *rand.Rand) {
	t.Helper()
	for _, d := range timeDaemons() {
		if chance(r, 3) {
			continue
		}
		c.write(t, "usr/lib/systemd/system/"+d.unit, "[Service]\nExecStart="+d.service+"\n[Install]\nWantedBy=multi-user.target\n")
		for name, text := range d.files {
			if !chance(r, 40) {
				c.write(t, name, text)
			}
		}
		wants := filepath.Join(c.root, "etc/systemd/system/multi-user.target.wants")
		if chance(r, 2) {
			require.NoError(t, os.MkdirAll(wants, 0o755))
			require.NoError(t, os.Symlink("/usr/lib/systemd/system/"+d.unit, filepath.Join(wants, d.unit)))
		}
		if chance(r, 30) {
			require.NoError(t, os.MkdirAll(wants, 0o755))
			require.NoError(t, os.Symlink("/dev/null", filepath.Join(c.root, "etc/systemd/system", d.unit)))
		}
	}
	for name, text := range map[string]string{
		"etc/chrony/conf.d/site.conf":                     "server ntp9.example.com\nminsources 3\nmaxdistance 0.1\nlogdir /var/log\ncmddeny all\n",
		"etc/chrony/conf.d/machineadm.conf":               "server ntp8.example.com iburst\n",
		"etc/ntpsec/ntp.d/zz-machineadm.conf":             "server ntp8.example.com iburst\n",
		"etc/systemd/timesyncd.conf.d/zz-machineadm.conf": "[Time]\nNTP=ntp8.example.com\n",
		"etc/systemd/timesyncd.conf.d/zzz.conf":           "[Time]\nNTP=ntp9.example.com\n",
		"etc/ntpsec/ntp.d/zzz.conf":                       "disable ntp\ntos floor 2\n",
		"etc/dhcp/dhclient.d/chrony.sh":                   "[ \"$PEERNTP\" = no ] || chronyc add server $s\n",
		"etc/NetworkManager/dispatcher.d/20-chrony":       "chronyc add server $s\n",
		"run/ntpsec/ntp.conf.dhcp":                        "server ntp9.example.com\n",
	} {
		if chance(r, 8) {
			c.write(t, name, text)
		}
	}
}

// provider is one whose daemon is installed, if there is one.
func (c *mixed) provider(r *rand.Rand) string {
	all := timeDaemons()
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, d := range all {
		if _, err := os.Stat(filepath.Join(c.root, "usr/lib/systemd/system", d.unit)); err == nil {
			return d.provider
		}
	}
	return all[0].provider
}

// timesync is a Timesync document. Few streams have two, because two that differ conflict.
func (c *mixed) timesync(r *rand.Rand, i int) {
	if strings.Contains(c.text, "kind: Timesync") && !chance(r, 10) {
		c.noop(r, i)
		return
	}
	var spec []string
	add := func(oneIn int, text ...string) {
		if chance(r, oneIn) {
			spec = append(spec, pick(r, text...))
		}
	}
	if !chance(r, 12) { // without a provider each one is started and asked
		spec = append(spec, "provider: "+c.provider(r))
	}
	var servers []string
	for n := range r.IntN(4) {
		options := pick(r, "", "", "", "", "", "", ", prefer: true", ", iburst: false", ", minPoll: 6, maxPoll: 8", ", nts: true")
		servers = append(servers, fmt.Sprintf("{address: %s%s}", pick(r, "ntp", "192.0.2.")+fmt.Sprint(n+1), options))
	}
	if len(servers) > 0 {
		spec = append(spec, "servers: ["+strings.Join(servers, ", ")+"]")
	}
	add(6, "pools: [{address: pool.example.com}]", "pools: [{address: pool.example.com}]", "pools: [{address: pool.example.com, maxSources: 2}]")
	add(20, "profile: aws", "profile: gcp", "profile: azure", "profile: unknown")
	add(20, "fallback: [ntp7.example.com]")
	add(12, "makeStep: {threshold: 400ms, limit: -1}", "makeStep: {threshold: 1s, limit: 3}", "makeStep: {threshold: x, limit: 3}")
	add(10, "rtcSync: true", "rtcSync: false")
	add(25, "refClocks: [{driver: pps, device: /dev/pps0}]", "refClocks: [{driver: phc, device: /dev/ptp0}]")
	add(4, "waitForSync: {timeout: 1m}")
	add(4, "disableOthers: false")
	add(5, "keepDistributionSources: true")
	add(25, "providerConfig: {directives: [\"leapsectz right/UTC\"]}", "providerConfig: {unknown: 1}",
		"providerConfig: {directives: [\"server ntp6 port 11123\", \"maxdistance 1\"]}", "providerConfig: {directives: [\"makestep 2 2\", \"cmdallow 192.0.2.0/24\"]}",
		"providerConfig: {directives: [\"driftfile /var/lib/drift\", \"tos maxdist 16\"]}")
	c.document(r, "machineadm.cluster.x-k8s.io/v1alpha1", "Timesync", fmt.Sprintf("t%d", i), spec)
}
