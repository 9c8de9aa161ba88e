package kubernetesnode

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/timeservers"
)

// node is a machine with all of Kubernetes, the host and the plugins.
type node struct{ *nodes.Node }

// fleet are a network with a time server, and what its machines have.
type fleet struct {
	network  *nodes.Network
	programs map[string]string // see build
}

func newFleet(t *testing.T, names ...string) fleet {
	t.Helper()
	network := nodes.NewNetwork(t, append(names, "time")...)
	timeservers.Chronyd(t, network, "time", timeservers.Options{})
	return fleet{network, build(t)}
}

func (f fleet) boot(t *testing.T, name string, controlPlane bool) node {
	t.Helper()
	n := node{cluster.Boot(t, f.network, name, controlPlane)}
	n.MustExec(t, "mkdir", "-p", "/usr/libexec/machineadm", "/etc/machineadm")
	for from, to := range f.programs {
		require.NoError(t, n.CopyIn(t.Context(), from, to, 0o755))
	}
	return n
}

// write writes the stream, with values in the place of names.
func (n node) write(t *testing.T, text string, values ...string) {
	t.Helper()
	r, err := n.ExecInput(t.Context(), strings.NewReader(strings.NewReplacer(values...).Replace(text)), "sh", "-c", "umask 077 && cat >"+stream)
	require.NoError(t, err)
	require.Zero(t, r.ExitCode, r.Stderr)
}

// run runs a command of the host with the stream and returns what it prints.
func (n node) run(t *testing.T, code int, command string) string {
	t.Helper()
	r, err := n.Exec(t.Context(), "machineadm", command, "--path", stream)
	require.NoError(t, err)
	if r.ExitCode != code {
		details := n.MustExec(t, "sh", "-c", "cat /run/machineadm/details.json || true").Stdout
		t.Fatalf("exit status %d\n%s%s\n%s", r.ExitCode, r.Stdout, r.Stderr, strings.ReplaceAll(details, "\\n", "\n"))
	}
	return r.Stdout + r.Stderr
}

// apply applies the stream, after which the machine is the node: Cluster API's file and the report say so, and a plan is empty.
func (n node) apply(t *testing.T) report.Report {
	t.Helper()
	n.run(t, report.ExitOK, "apply")
	n.MustExec(t, "test", "-e", "/run/cluster-api/bootstrap-success.complete")
	n.run(t, report.ExitOK, "plan")
	var done report.Report
	require.NoError(t, json.Unmarshal([]byte(n.MustExec(t, "cat", "/run/machineadm/report.json").Stdout), &done))
	require.Equal(t, report.RunSucceeded, done.Outcome)
	require.Len(t, done.Documents, 4)
	return done
}

// unchanged applies the stream to a machine that is the node already.
func (n node) unchanged(t *testing.T) {
	t.Helper()
	for _, document := range n.apply(t).Documents {
		require.Equal(t, report.Unchanged, document.Outcome, document.Kind)
	}
}

// noSecrets checks that only the stream and the data of etcd have the secrets of the stream.
func (n node) noSecrets(t *testing.T) {
	t.Helper()
	require.Equal(t, stream+"\n", n.MustExec(t, "sh", "-c", "{ "+secrets+"; } | grep -v ^/var/lib/etcd/").Stdout)
}
