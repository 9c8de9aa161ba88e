package foreign

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
)

// OpenNTPD tests a provider of Timesync for OpenNTPD on a node with OpenRC as PID 1: the host chooses it by itself, and the daemon outlives
// the run. Without control groups, in which it can, nothing is changed. host is the program machineadm; install puts the plugin below the root
// of the node, and build, if there is one, builds it there.
func OpenNTPD(t *testing.T, host string, install func(root string) error, build func(n *nodes.Node)) {
	t.Helper()
	const stream = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Timesync
metadata: {name: site}
spec: {servers: [{address: ADDRESS}]}
`
	n := nodes.Boot(t, nodes.Options{
		Suite: nodes.Bookworm, Init: nodes.OpenRC, Layers: []nodes.Layer{nodes.OpenNTPD, nodes.PythonGRPC},
		Prepare: func(root string) error {
			if err := CopyFile(host, filepath.Join(root, "usr/bin/machineadm")); err != nil {
				return err
			}
			return install(root)
		},
	})
	if build != nil {
		build(n)
	}
	apply := func(address string, exit int, says string) {
		t.Helper()
		document := strings.Replace(stream, "ADDRESS", address, 1)
		got, err := n.ExecInput(t.Context(), strings.NewReader(document), "machineadm", "apply", "--path", "-")
		if err != nil {
			t.Fatal(err)
		}
		text := got.Stdout + got.Stderr
		if got.ExitCode != exit || !strings.Contains(text, says) {
			t.Fatalf("exit %d, want %d and %q:\n%s", got.ExitCode, exit, says, text)
		}
		if strings.Contains(text, "warning") { // the run warns of a process that it ends
			t.Errorf("a warning:\n%s", text)
		}
	}
	is := func(got, want, what string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	// A daemon that is restarted while it starts can end: its three processes are awaited.
	processes := func() (all string) {
		t.Helper()
		nodestest.Eventually(t, "the processes of the daemon", func() bool {
			got, err := n.Exec(t.Context(), "pgrep", "ntpd")
			all = got.Stdout
			return err == nil && strings.Count(all, "\n") == 3
		})
		return all
	}
	processes()
	apply("192.0.2.1", report.ExitPrecondition, "hint: mount them: mount -t cgroup2 none /sys/fs/cgroup")
	n.MustExec(t, "mount", "-t", "cgroup2", "none", "/sys/fs/cgroup")
	apply("192.0.2.1", report.ExitOK, "1 changed")
	if group := n.MustExec(t, "sh", "-c", "cat /proc/$(pgrep -o ntpd)/cgroup").Stdout; !strings.Contains(group, "/openrc.openntpd") {
		t.Errorf("the daemon is in %q", group)
	}
	is(n.MustExec(t, "cat", "/etc/openntpd/ntpd.conf").Stdout, "server 192.0.2.1\n", "the configuration")
	before := processes()
	apply("192.0.2.1", report.ExitOK, "1 unchanged")
	is(processes(), before, "the processes after nothing has changed")
	apply("192.0.2.2", report.ExitOK, "1 changed")
	if processes() == before {
		t.Error("the daemon has its old configuration")
	}
}

// CopyFile copies a program; the directories above are made.
func CopyFile(from, to string) error {
	data, err := os.ReadFile(filepath.Clean(from))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // a directory of the system
		return err
	}
	return os.WriteFile(to, data, 0o755) //nolint:gosec // a program
}
