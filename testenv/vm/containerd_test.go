package vm

import (
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/containerd"
)

const (
	runtimePlugin = "/usr/libexec/machineadm/machineadm-container-runtime-plugin-containerd"
	runtimeStream = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: ContainerRuntime
metadata: {name: node}
spec:
  provider: containerd
  cgroupDriver: systemd
  sandboxImage: registry.test/pause:3.10
  logLevel: `
)

// TestContainerdClock: whether the daemon has read its configuration is not decided by any time. Time synchronisation is
// set up at the same first boot, so the clock is an hour off before the configuration is written, or right after.
func TestContainerdClock(t *testing.T) {
	needsVM(t)
	install := programs(t, map[string]string{
		hostPath: "../../host/cmd/machineadm", runtimePlugin: "../../plugins/container-runtime/containerd",
	})
	n := containerd.StartVM(t, containerd.V17, install)
	invocation := func() string {
		return n.MustExec(t, "systemctl", "show", "--property=InvocationID", "containerd.service").Stdout
	}
	want := func(level string) {
		t.Helper()
		n.Write(t, nodeFile, runtimeStream+level+"\n")
		n.MustExec(t, "chmod", "600", nodeFile)
	}
	step := func(by string) {
		t.Helper()
		n.MustExec(t, "date", "--set="+by)
	}
	for name, c := range map[string]struct{ before, after, level string }{
		"ahead before": {"+1 hour", "-1 hour", "debug"},
		"ahead after":  {"+0 hour", "+1 hour", "warn"},
		"back before":  {"-1 hour", "+1 hour", "info"},
		"back after":   {"+0 hour", "-1 hour", "error"},
	} {
		t.Run(name, func(t *testing.T) {
			before := now(t, n.Node)
			defer n.MustExec(t, "date", "--set=@"+before)
			want(c.level)
			step(c.before)
			old := invocation()
			apply(t, n.Node, nodeFile, report.Changed)
			n.Await(t)
			begun := invocation()
			if begun == old {
				t.Error("the daemon was not restarted")
			}
			if dump := n.Dump(t, containerd.Config).Stdout; !strings.Contains(dump, `level = "`+c.level+`"`) {
				t.Errorf("the configuration:\n%s", dump)
			}
			step(c.after)
			apply(t, n.Node, nodeFile, report.Unchanged)
			if invocation() != begun {
				t.Error("the daemon was restarted for nothing")
			}
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		// The files are new and the daemon is not: what the clock says of them proves nothing.
		before := now(t, n.Node)
		defer n.MustExec(t, "date", "--set=@"+before)
		want("fatal")
		old := invocation()
		n.MustExec(t, "sh", "-c", `machineadm apply --path "$1" >/dev/null 2>&1 &
			until grep -q fatal /etc/containerd/config.toml; do kill -0 $! || exit 1; done
			kill -KILL $!`, "sh", nodeFile)
		step("+1 hour")
		expect(t, n.Node, report.ExitOK, "machineadm", "apply", "--path", nodeFile)
		n.Await(t)
		if invocation() == old {
			t.Error("the daemon still runs with the old configuration")
		}
		step("-1 hour")
		apply(t, n.Node, nodeFile, report.Unchanged)
	})
}
