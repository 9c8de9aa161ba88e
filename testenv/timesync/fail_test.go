package timesync

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/timeservers"
)

// failing are servers that cannot be used: the address and the key in the document, and what the operator reads.
var failing = []struct {
	name, key string
	reply     timeservers.Reply // nil: the name does not exist
	want      string
}{
	{"silent", "", timeservers.Silent, "silent: no answer within 3s; check the address and whether UDP port 123 is open"},
	{"stratum16", "", timeservers.Unsynchronized, "stratum16: it is not synchronized itself (stratum 16); correct that server"},
	{"deny", "", timeservers.KissOfDeath("DENY"), "deny: it denies this machine its service (kiss code DENY); allow this machine"},
	{"rate", "", timeservers.KissOfDeath("RATE"), "rate: it limits its clients (kiss code RATE); use a longer minPoll"},
	{
		"mac", ", key: {id: 7, type: SHA1, value: {value: canary-of-a-key}}", timeservers.WrongMAC,
		"mac: it does not accept the key; compare id, type and value with the server's",
	},
	{"missing.example", "", nil, "missing.example: the name cannot be resolved; check the DNS servers of this machine"},
}

// TestServersThatFail: the operator reads which server failed, what it answered and what to do.
func TestServersThatFail(t *testing.T) {
	t.Parallel()
	needs.Root(t)
	names := []string{"good", "far", "chrony", "ntpsec", "systemd-timesyncd"}
	replies := map[string]timeservers.Reply{"good": timeservers.Correct, "far": timeservers.Off(time.Hour)}
	for _, f := range failing {
		if f.reply != nil {
			names, replies[f.name] = append(names, f.name), f.reply
		}
	}
	network := nodes.NewNetwork(t, names...)
	for name, reply := range replies {
		timeservers.Respond(t, network.ListenPacket(t, name, 123), reply)
	}
	for daemon, suite := range map[timeservers.Daemon]nodes.Suite{
		timeservers.Chrony: nodes.Trixie, timeservers.NTPsec: nodes.Trixie, timeservers.Timesyncd: nodes.Bookworm,
	} {
		t.Run(string(daemon), func(t *testing.T) {
			t.Parallel()
			n := start(t, suite, daemon, network, string(daemon))
			n.apply(t, "{servers: [{address: good}], waitForSync: {timeout: 4m}}")
			n.follows(t, network, "good")
			if daemon == timeservers.Chrony { // the servers are asked by what all providers share
				n.keepsGoodServer(t, network)
			}
			n.waitsInVain(t)
		})
	}
}

// keepsGoodServer: a document whose servers cannot be used changes nothing; one server that can be used is enough.
func (n node) keepsGoodServer(t *testing.T, network *nodes.Network) {
	t.Helper()
	list := ""
	for _, f := range failing {
		list += "{address: " + f.name + f.key + "}, "
	}
	said := n.refused(t, "{servers: ["+list+"]}", report.ExitDeadline, "--timeout", "5s")
	require.Contains(t, said, "none of the servers can be used, so the configuration stays unchanged")
	for _, f := range failing {
		require.Contains(t, said, f.want)
	}
	n.follows(t, network, "good")
	r := n.run(t, "{servers: ["+list+"{address: good}]}", "apply")
	require.Equal(t, report.ExitOK, r.ExitCode, "%s%s", r.Stdout, r.Stderr)
	for i, warning := range n.report(t).Warnings {
		require.Contains(t, warning, failing[i].want)
	}
	require.Len(t, n.report(t).Warnings, len(failing))
	require.NotContains(t, said+r.Stdout+r.Stderr, "canary")
}

// waitsInVain: servers that answer, but not with the time of this machine, end the wait with what each of them answered.
func (n node) waitsInVain(t *testing.T) {
	t.Helper()
	lists := []string{"{address: far}", "{address: far}, {address: good}"}
	if n.daemon == timeservers.Timesyncd {
		lists = lists[:1] // it compares no servers: a lost answer of the one that it follows would leave the correct one
	}
	for _, list := range lists {
		n.inVain(t, list)
	}
	// A SIGTERM ends the wait at once.
	const script = `machineadm apply --path ` + stream + ` >/run/said 2>&1 & host=$!
until grep -q 'synchronized' /run/said || ! kill -0 $host; do sleep 0.02; done
kill -TERM $host; began=$(date +%s%N); wait $host; code=$?; echo $code $((($(date +%s%N) - began) / 1000000)); cat /run/said`
	// The intervals make it another configuration: timesyncd, which cannot set the clock here, has an answer of far already.
	n.run(t, "{servers: [{address: far, minPoll: 5, maxPoll: 6}], waitForSync: {timeout: 1m}}", "validate")
	said := n.sh(t, script)
	words := strings.Fields(said)
	require.Equal(t, "8", words[0], said)
	require.Less(t, len(words[1]), len("2000"), "milliseconds until the end: %s", said)
}

// inVain applies a list with far until the message has what each server answers: the wait doubles, because a busy machine answers late.
func (n node) inVain(t *testing.T, list string) {
	t.Helper()
	wants := []string{`the servers answer: far: stratum 2, offset (1h0m0|59m59\.9)`, `correct the sources, or raise waitForSync\.timeout`}
	if strings.Contains(list, "good") {
		wants = append(wants, `two servers disagree by (1h0m0|59m59\.9)\S+: good: stratum 2`, `; good: stratum 2, offset `)
	}
	servers := list
	for wait, poll := 8*time.Second, 7; ; wait, poll = 2*wait, poll+1 {
		r := n.run(t, fmt.Sprintf("{servers: [%s], waitForSync: {timeout: %s}}", servers, wait), "apply")
		said := r.Stdout + r.Stderr
		require.Equal(t, report.ExitPrecondition, r.ExitCode, said)
		require.Contains(t, said, "the clock is synchronized: not within "+wait.String())
		missing := slices.IndexFunc(wants, func(want string) bool { return !regexp.MustCompile(want).MatchString(said) })
		if missing < 0 {
			return
		}
		require.Less(t, wait, needs.Timeout(time.Minute), "%q is not in %s", wants[missing], said)
		// Other intervals make it another configuration, for which the servers are asked again.
		servers = strings.ReplaceAll(list, "}", fmt.Sprintf(", minPoll: 6, maxPoll: %d}", poll))
	}
}
