package firstboot

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	routedFile = "/etc/machineadm/node.yaml"
	// siteNetwork puts the server behind a router that only a default route leads to, and the node has none.
	siteNetwork = `[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=sh -c 'echo 0 >/proc/sys/net/ipv4/ip_forward'
ExecStart=ip netns add site
ExecStart=ip link add up0 type veth peer name up1 netns site
ExecStart=ip address add 198.51.100.2/24 dev up0
ExecStart=ip link set up0 up
ExecStart=ip -n site link set lo up
ExecStart=ip -n site address add 192.0.2.1/32 dev lo
ExecStart=ip -n site address add 198.51.100.1/24 dev up1
ExecStart=ip -n site link set up1 up
`
	inSite = "[Unit]\nRequires=site-network.service\nAfter=site-network.service\n[Service]\nNetworkNamespacePath=/run/netns/site\n"
	// uplink adds the route as soon as the machine forwards, as a router's does.
	uplink = `[Service]
ExecStart=sh -c 'until grep -qx 1 /proc/sys/net/ipv4/ip_forward; do sleep 0.1; done; exec ip route add default via 198.51.100.1'
`
	noRoute    = "config.example.com:443 cannot be reached: network is unreachable"
	forwarding = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: forwarding}\nspec: {parameters: {net.ipv4.ip_forward: 1}}\n"
)

// bootRouted boots a node from which the server of these files can be reached only by a default route.
func bootRouted(t *testing.T, a authority.Authority, files map[string]string) *nodes.Node {
	t.Helper()
	routed := strings.Replace(site, "127.0.0.1:443", "192.0.2.1:443", 1)
	all := map[string]string{
		"/etc/hosts":                                    "127.0.0.1 localhost\n192.0.2.1 config.example.com\n",
		"/etc/nginx/conf.d/site.conf":                   strings.Replace(routed, "\troot", "\tlocation = /slow.yaml { limit_rate 1; limit_rate_after 1k; }\n\troot", 1),
		"/etc/systemd/system/site-network.service":      siteNetwork,
		"/etc/systemd/system/uplink.service":            uplink,
		"/etc/systemd/system/nginx.service.d/site.conf": inSite,
	}
	for path, text := range files {
		all[path] = text
	}
	return bootSite(t, a, all)
}

// event is a part of a line of --output json.
type event struct {
	Type, Pending, Message string
	Document               struct{ Kind, Name string }
	Outcome                report.Outcome
	Report                 report.Report
}

// said returns the messages about a document in the events of a type.
func said(events []event, kind, document string) []string {
	var out []string
	for _, e := range events {
		if e.Type == kind && e.Document.Kind+"/"+e.Document.Name == document {
			out = append(out, e.Pending+e.Message)
		}
	}
	return out
}

// ends returns the documents in the order of their ends, with their outcomes.
func ends(events []event) string {
	var out []string
	for _, e := range events {
		if e.Type == "document-finished" {
			out = append(out, e.Document.Kind+"/"+e.Document.Name+" "+string(e.Outcome))
		}
	}
	return strings.Join(out, ", ")
}

// eventsFile has the events of the command that streamed runs, while it runs.
const eventsFile = "/run/events"

// streamed writes a stream and runs a command that ends with this code, after a script. It returns the events.
func streamed(t *testing.T, n *nodes.Node, code int, text, script string, argv ...string) []event {
	t.Helper()
	_, err := n.ExecInput(t.Context(), strings.NewReader(text), "sh", "-c", "umask 077; cat >"+routedFile)
	require.NoError(t, err)
	argv = append(argv, "--path", routedFile, "--output", "json")
	const command = "\nmachineadm \"$@\" >" + eventsFile + "\ncode=$?\ncat " + eventsFile + "\nexit $code"
	got, err := n.Exec(t.Context(), append([]string{"sh", "-c", "rm -f " + eventsFile + "\n" + script + command, "sh"}, argv...)...)
	require.NoError(t, err)
	require.Equal(t, code, got.ExitCode, "%s%s", got.Stdout, got.Stderr)
	var events []event
	for line := range strings.Lines(got.Stdout) {
		var e event
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		events = append(events, e)
	}
	require.NotEmpty(t, events)
	return events
}

// TestNoDefaultRoute: a source is behind a default route that the machine gets only from a parameter that a document ahead sets.
// Then the link is down for a while, and at last the source sends a byte a second.
func TestNoDefaultRoute(t *testing.T) {
	t.Parallel()
	a := authority.New(t)
	object := noop("fetched", "touch: [/var/fetched]")
	slow := object + "# " + strings.Repeat("x", 4<<10) + "\n"
	n := bootRouted(t, a, map[string]string{"/srv/www/node.yaml": object, "/srv/www/slow.yaml": slow})
	whole := forwarding + remote(a, object) + noop("behind", "touch: [/var/behind]")

	t.Run("for good", func(t *testing.T) {
		limited := strings.Replace(whole, "{name: site}", "{name: site, timeout: 20s}", 1)
		events := streamed(t, n, report.ExitDeadline, limited, "", "apply")
		assert.Equal(t, "Sysctl/forwarding Changed, RemoteConfig/site Failed", ends(events))
		failed := events[len(events)-1].Report
		require.Len(t, failed.Errors, 1)
		assert.Contains(t, failed.Errors[0].Message, noRoute, "the cause, not only the limit")
		gone(t, n, "/var/fetched", "/var/behind", sentinel)
		n.MustExec(t, "sh", "-c", "echo 0 >/proc/sys/net/ipv4/ip_forward; systemctl start uplink")
	})
	t.Run("until a document is applied", func(t *testing.T) {
		planned := streamed(t, n, report.ExitDiffers, whole, "", "plan")
		require.Len(t, said(planned, "document-planned", "RemoteConfig/site"), 1)
		assert.Contains(t, said(planned, "document-planned", "RemoteConfig/site")[0], noRoute)
		events := streamed(t, n, report.ExitOK, whole, "", "apply")
		require.Len(t, said(events, "document-planned", "RemoteConfig/site"), 1)
		assert.Contains(t, said(events, "document-planned", "RemoteConfig/site")[0], noRoute)
		assert.Equal(t, "Sysctl/forwarding Changed, RemoteConfig/site Unchanged, Noop/fetched Changed, Noop/behind Changed", ends(events))
		n.MustExec(t, "test", "-e", "/var/fetched", "-a", "-e", "/var/behind", "-a", "-s", sentinel)
	})
	// The link comes up when the host tries to connect: in the first planning, or at the turn of the document, after an event of the planning.
	const tried = `until [ -n "$(ss -Hnt state syn-sent dst 192.0.2.1)" ]; do sleep 0.05; done; `
	for name, until := range map[string]string{
		"link down in the first planning": tried,
		"link down after it":              "until grep -qs '\"pending\":' " + eventsFile + "; do sleep 0.05; done; " + tried,
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			events := streamed(t, n, report.ExitOK, whole, "ip -n site link set up1 down\n("+until+"ip -n site link set up1 up) >/dev/null 2>&1 &", "apply")
			assert.Equal(t, "Sysctl/forwarding Unchanged, RemoteConfig/site Unchanged, Noop/fetched Unchanged, Noop/behind Unchanged", ends(events))
			assert.Less(t, time.Since(began), needs.Timeout(3*time.Minute))
			if until != tried {
				require.Len(t, said(events, "document-planned", "RemoteConfig/site"), 1)
				assert.Contains(t, said(events, "document-planned", "RemoteConfig/site")[0], "config.example.com:443 cannot be reached: ")
			}
		})
	}
	t.Run("a byte a second", func(t *testing.T) {
		began := time.Now()
		text := strings.Replace(remote(a, slow), "node.yaml", "slow.yaml", 1) + noop("last", "touch: [/var/last]")
		events := streamed(t, n, report.ExitDeadline, text, "", "apply", "--timeout", "15s")
		assert.Less(t, time.Since(began), needs.Timeout(3*time.Minute), "the whole would take an hour")
		assert.Equal(t, report.RunFailed, events[len(events)-1].Report.Outcome)
		gone(t, n, "/var/last")
		gone(t, n, "/var/lib/machineadm/resolved")
	})
}
