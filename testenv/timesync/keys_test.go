package timesync

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/timeservers"
)

// keyed is a specification with a key of the server.
func keyed(k timeservers.Key) string {
	const spec = `{servers: [{address: time, key: {id: %d, type: %s, value: {value: "HEX:%s"}}}], waitForSync: {timeout: 1m}}`
	return fmt.Sprintf(spec, k.ID, k.Type, k.Secret)
}

// TestKeys: the daemon authenticates the server, and the value of the key is in the key file alone.
func TestKeys(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	key, wrong := timeservers.NewKey(7, "AES128"), timeservers.NewKey(7, "AES128")
	ca := authority.New(t)
	trust := func(root string) error {
		return write(root, "/usr/local/share/ca-certificates/test.crt", string(ca.Certificate), 0o644)
	}
	network := nodes.NewNetwork(t, "time", "chrony", "ntpsec")
	timeservers.Chronyd(t, network, "time", timeservers.Options{Keys: []timeservers.Key{key}, CA: &ca})
	for daemon, want := range map[timeservers.Daemon]struct {
		suite                       nodes.Suite
		file, owner, auth, key, nts string
	}{
		timeservers.Chrony: {nodes.Trixie, "/etc/chrony/machineadm.keys", "_chrony", "chronyc -c authdata", ",SK,", ",NTS,"},
		timeservers.NTPsec: {nodes.Bookworm, "/etc/ntpsec/ntp.keys", "ntpsec", "ntpq -c associations", " ok ", ""},
	} {
		t.Run(string(daemon), func(t *testing.T) {
			t.Parallel()
			n := start(t, want.suite, daemon, network, string(daemon), trust)
			n.MustExec(t, "update-ca-certificates")
			n.keepsSecret(t, key, want.owner, want.file)
			n.follows(t, network, "time")
			require.Contains(t, n.sh(t, want.auth), want.key)
			n.unchanged(t, keyed(key))
			said := n.refused(t, keyed(wrong), report.ExitDeadline, "--timeout", "5s")
			require.Contains(t, said, "time: no answer within 3s; compare id, type and value of the key with the server's")
			require.NotContains(t, said, wrong.Secret)
			if want.nts == "" {
				return
			}
			n.apply(t, "{servers: [{address: time, nts: true}], waitForSync: {timeout: 1m}}")
			n.follows(t, network, "time")
			require.Contains(t, n.sh(t, want.auth), want.nts)
			require.NotContains(t, n.sh(t, "cat "+want.file+" 2>/dev/null; true"), key.Secret)
		})
	}
}

// keepsSecret applies with a key, and looks for its value wherever others could read it.
func (n node) keepsSecret(t *testing.T, key timeservers.Key, owner, file string) {
	t.Helper()
	n.sh(t, `umask 077; systemd-run --quiet sh -c '
		while [ ! -e /root/applied ]; do cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ; done 2>/dev/null |
			tr "\0" "\n" | sort -u >/root/words; touch /root/sorted'`)
	r := n.run(t, keyed(key), "apply", "--log-level", "debug")
	require.Equal(t, report.ExitOK, r.ExitCode, "%s%s%s", r.Stdout, r.Stderr, n.details(t))
	words := n.sh(t, `touch /root/applied; until [ -e /root/sorted ]; do sleep 0.05; done; cat /root/words`)
	require.Contains(t, words, "machineadm-timesync-plugin-", "the watch saw no run")
	status := n.MustExec(t, "machineadm", "status", "--output", "json")
	journal := n.MustExec(t, "journalctl", "--all", "--output=json", "--no-pager")
	for what, text := range map[string]string{
		"stdout": r.Stdout, "stderr": r.Stderr, "arguments and environments": words, "status": status.Stdout, "journal": journal.Stdout,
	} {
		require.NotContains(t, text, key.Secret, what)
	}
	found, err := n.ExecInput(t.Context(), strings.NewReader(key.Secret), "sh", "-c",
		`grep -rlF -f /dev/stdin /etc /run /var /tmp /root /home /dev/shm 2>/dev/null | sort | xargs -r stat -c '%n %a %U'`)
	require.NoError(t, err)
	want := []string{file + " 600 " + owner, stream + " 600 root"}
	require.ElementsMatch(t, want, strings.Split(strings.TrimSpace(found.Stdout), "\n"))
}
