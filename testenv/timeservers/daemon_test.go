package timeservers_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
	"github.com/machineadm/machineadm/testenv/timeservers"
)

// setup is one way to use the server: the daemon's files, and a word of what it reports about the authentication.
type setup struct {
	files map[string]string
	auth  string
}

// Each daemon selects a real server, with every kind of authentication that it has, also after a reboot.
func TestDaemons(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	ca := authority.New(t)
	var keys []timeservers.Key
	for i, kind := range timeservers.KeyTypes() {
		keys = append(keys, timeservers.NewKey(i+1, kind))
	}
	for _, suite := range nodes.Suites() {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			network := nodes.NewNetwork(t, "time", "chrony", "ntpsec", "systemd-timesyncd")
			timeservers.Chronyd(t, network, "time", timeservers.Options{Stratum: 5, Keys: keys, CA: &ca})
			for daemon, setups := range map[timeservers.Daemon]map[string]setup{
				timeservers.Chrony:    chronySetups(keys, ca.Certificate),
				timeservers.NTPsec:    ntpsecSetups(keys),
				timeservers.Timesyncd: {"plain": {files: map[string]string{"/etc/systemd/timesyncd.conf": "[Time]\nNTP=time\n"}}},
			} {
				t.Run(string(daemon), func(t *testing.T) {
					t.Parallel()
					o := daemon.Options(suite)
					o.Network, o.Hostname = network, string(daemon)
					n := nodes.Boot(t, o)
					for _, name := range slices.Sorted(maps.Keys(setups)) {
						t.Run(name, func(t *testing.T) { selects(t, n, daemon, setups[name]) })
					}
					require.NoError(t, n.Reboot(t.Context()))
					waitSelected(t, n, daemon)
				})
			}
		})
	}
}

func chronySetups(keys []timeservers.Key, ca []byte) map[string]setup {
	const main, keyFile, caFile = "/etc/chrony/chrony.conf", "/etc/chrony/chrony.keys", "/etc/chrony/ca.pem"
	all := map[string]setup{
		"plain": {files: map[string]string{main: "server time iburst\n"}, auth: ",-,"},
		"nts":   {files: map[string]string{main: "server time iburst nts\nntstrustedcerts " + caFile + "\n", caFile: string(ca)}, auth: ",NTS,"},
	}
	for _, k := range keys {
		config := fmt.Sprintf("server time iburst key %d\nkeyfile %s\n", k.ID, keyFile)
		all[k.Type] = setup{files: map[string]string{main: config, keyFile: k.Chrony()}, auth: ",SK,"}
	}
	return all
}

func ntpsecSetups(keys []timeservers.Key) map[string]setup {
	const main, keyFile = "/etc/ntpsec/ntp.conf", "/etc/ntpsec/ntp.keys"
	// A single source suffices, unlike in Debian's own configuration. Without a restrict directive ntpd drops every query.
	const base = "tos minclock 1 minsane 1\nrestrict 127.0.0.1\nrestrict ::1\n"
	all := map[string]setup{"plain": {files: map[string]string{main: base + "server time iburst\n"}, auth: "none"}}
	for _, k := range keys {
		config := fmt.Sprintf("%sserver time iburst key %d\nkeys %s\ntrustedkey %d\n", base, k.ID, keyFile, k.ID)
		all[k.Type] = setup{files: map[string]string{main: config, keyFile: k.NTPsec()}, auth: "ok"}
	}
	return all
}

func selects(t *testing.T, n *nodes.Node, daemon timeservers.Daemon, s setup) {
	t.Helper()
	for name, text := range s.files {
		put(t, n, name, text)
	}
	n.MustExec(t, "systemctl", "restart", string(daemon))
	waitSelected(t, n, daemon)
	switch daemon {
	case timeservers.Chrony:
		require.Contains(t, n.MustExec(t, "chronyc", "-c", "authdata").Stdout, s.auth)
	case timeservers.NTPsec:
		require.Contains(t, strings.Fields(n.MustExec(t, "ntpq", "-c", "associations").Stdout), s.auth)
	}
}

func waitSelected(t *testing.T, n *nodes.Node, daemon timeservers.Daemon) {
	t.Helper()
	nodestest.Eventually(t, string(daemon)+" to select the server", func() bool { return daemon.Selected(t, n) == "10.77.0.1" })
}

func put(t *testing.T, n *nodes.Node, name, text string) {
	t.Helper()
	got, err := n.ExecInput(t.Context(), strings.NewReader(text), "sh", "-c", `cat >"$1"`, "sh", name)
	require.NoError(t, err)
	require.Zero(t, got.ExitCode, got.Stderr)
}
