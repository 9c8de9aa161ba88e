// Package timesync runs the real host with the real Timesync plugins on booted nodes, each with a real time daemon, against
// real time servers. A container cannot set the clock: testenv/vm shows that it is stepped.
package timesync

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
	"github.com/machineadm/machineadm/testenv/timeservers"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	stream  = "/etc/machineadm/node.yaml"
	header  = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Timesync\nmetadata: {name: node}\nspec:\n  "
	plugins = "/usr/libexec/machineadm/machineadm-timesync-plugin-"
)

// built is the directory of the host and the plugins.
var built string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) (code int) {
	if !needs.Runs(needs.System) {
		return m.Run()
	}
	var err error
	if built, err = os.MkdirTemp("", "timesync-"); err == nil {
		defer func() { err = os.RemoveAll(built) }()
		err = tools.Products(context.Background(), built, map[string]string{
			"machineadm": "host/cmd/machineadm", "chronyd": "plugins/timesync/chronyd", "ntpd": "plugins/timesync/ntpd",
			"systemd": "plugins/timesync/systemd",
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build host and plugins:", err)
		return 1
	}
	return m.Run()
}

// install puts the host and all plugins into a node.
func install(root string) error {
	for name, at := range map[string]string{
		"machineadm": "/usr/bin/machineadm", "chronyd": plugins + "chronyd", "ntpd": plugins + "ntpd", "systemd": plugins + "systemd",
	} {
		data, err := os.ReadFile(filepath.Join(built, name))
		if err != nil {
			return err
		}
		if err := write(root, at, string(data), 0o755); err != nil {
			return err
		}
	}
	return nil
}

func write(root, path, text string, mode os.FileMode) error {
	at := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.WriteFile(at, []byte(text), mode)
}

// node is a booted machine with a time daemon and machineadm.
type node struct {
	*nodes.Node
	daemon timeservers.Daemon
}

func start(t *testing.T, suite nodes.Suite, daemon timeservers.Daemon, network *nodes.Network, name string,
	prepare ...func(root string) error,
) node {
	t.Helper()
	o := daemon.Options(suite)
	o.Network, o.Hostname = network, name
	o.Prepare = nodes.InOrder(append(prepare, o.Prepare, install)...)
	return node{nodes.Boot(t, o), daemon}
}

// provider is the plugin for a daemon.
func provider(d timeservers.Daemon) string {
	return map[timeservers.Daemon]string{
		timeservers.Chrony: "chronyd", timeservers.NTPsec: "ntpd", timeservers.Timesyncd: "systemd",
	}[d]
}

// sh runs a shell script, which must succeed.
func (n node) sh(t *testing.T, script string, arguments ...string) string {
	t.Helper()
	return n.MustExec(t, append([]string{"sh", "-c", script, "sh"}, arguments...)...).Stdout
}

// run passes a specification to a command of the host.
func (n node) run(t *testing.T, spec, command string, flags ...string) nodes.Result {
	t.Helper()
	const script = `umask 077; mkdir -p /etc/machineadm; cat >` + stream + `; exec machineadm "$@" --path ` + stream
	argv := append([]string{"sh", "-c", script, "sh", command}, flags...)
	r, err := n.ExecInput(t.Context(), strings.NewReader(header+spec+"\n"), argv...)
	require.NoError(t, err)
	return r
}

// apply applies a specification twice: the second run changes nothing and does not restart the daemon.
func (n node) apply(t *testing.T, spec string) report.Document {
	t.Helper()
	r := n.run(t, spec, "apply")
	require.Equal(t, report.ExitOK, r.ExitCode, "%s%s%s", r.Stdout, r.Stderr, n.details(t))
	done := n.report(t)
	n.unchanged(t, spec)
	return done
}

// unchanged checks that neither plan nor apply finds anything to do.
func (n node) unchanged(t *testing.T, spec string) {
	t.Helper()
	running := n.invocations(t)
	r := n.run(t, spec, "plan")
	require.Equal(t, report.ExitOK, r.ExitCode, "the plan afterwards: %s%s", r.Stdout, r.Stderr)
	r = n.run(t, spec, "apply")
	require.Equal(t, report.ExitOK, r.ExitCode, "%s%s", r.Stdout, r.Stderr)
	require.Equal(t, report.Unchanged, n.report(t).Outcome, r.Stdout)
	require.Equal(t, running, n.invocations(t), "the daemon was restarted")
}

// refused applies what cannot be applied: the files and the daemon stay. It returns what the operator sees.
func (n node) refused(t *testing.T, spec string, code int, flags ...string) string {
	t.Helper()
	files, running := n.files(t), n.invocations(t)
	r := n.run(t, spec, "apply", flags...)
	require.Equal(t, code, r.ExitCode, "%s%s%s", r.Stdout, r.Stderr, n.details(t))
	require.Equal(t, files, n.files(t), r.Stdout)
	require.Equal(t, running, n.invocations(t), r.Stdout)
	return r.Stdout + r.Stderr
}

// report is the document's part of the last report.
func (n node) report(t *testing.T) report.Document {
	t.Helper()
	var r report.Report
	require.NoError(t, json.Unmarshal([]byte(n.MustExec(t, "cat", "/run/machineadm/report.json").Stdout), &r))
	require.Len(t, r.Documents, 1)
	return r.Documents[0]
}

func (n node) details(t *testing.T) string {
	t.Helper()
	return n.sh(t, `cat /run/machineadm/details.json; systemctl status --no-pager -n 20 chrony ntpsec systemd-timesyncd; true`)
}

// invocations has another text after each start of a daemon.
func (n node) invocations(t *testing.T) string {
	t.Helper()
	return n.sh(t, "systemctl show --property=Id,ActiveState,InvocationID chrony.service ntpsec.service systemd-timesyncd.service")
}

// files are the configuration of the daemons and the drop-ins of their services, with owner and mode.
func (n node) files(t *testing.T) string {
	t.Helper()
	return n.sh(t, `find /etc/chrony /etc/ntpsec /etc/default /etc/systemd -printf '%p %m %u:%g %l\n' \
		-type f -exec sha256sum {} + 2>/dev/null | sort`)
}

// sources are the names of the servers that the daemon uses, as it reports them.
func (n node) sources(t *testing.T) []string {
	t.Helper()
	script := map[timeservers.Daemon]string{
		timeservers.Chrony:    `chronyc -N -c sources -a | cut -d, -f3`,
		timeservers.NTPsec:    `ntpq -p | tail -n +3 | cut -c2- | cut -d' ' -f1`,
		timeservers.Timesyncd: `timedatectl show-timesync | sed -n 's/^\(System\|Link\|Runtime\)NTPServers=//p'`,
	}[n.daemon]
	return strings.Fields(n.sh(t, script))
}

// follows waits until the daemon follows a server of the network. It is the only one that runs, and the server its only source.
func (n node) follows(t *testing.T, network *nodes.Network, name string) {
	t.Helper()
	address := network.Address(name).String()
	nodestest.Eventually(t, string(n.daemon)+" to follow "+name, func() bool { return n.daemon.Selected(t, n.Node) == address })
	require.Equal(t, []string{name}, n.sources(t))
	require.Equal(t, []timeservers.Daemon{n.daemon}, n.running(t))
}

// running are the time daemons that run, by their processes.
func (n node) running(t *testing.T) []timeservers.Daemon {
	t.Helper()
	all := map[string]timeservers.Daemon{
		"chronyd": timeservers.Chrony, "ntpd": timeservers.NTPsec, "systemd-timesyn": timeservers.Timesyncd,
	}
	var found []timeservers.Daemon
	for _, name := range strings.Fields(n.sh(t, `cat /proc/[0-9]*/comm 2>/dev/null; true`)) {
		if d, ok := all[name]; ok && !slices.Contains(found, d) {
			found = append(found, d)
		}
	}
	return found
}
