package vm

import (
	"os"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/containerd"
	"github.com/machineadm/machineadm/testenv/tools"
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

// newer is the directory of the programs of a newer containerd until they are installed.
const newer = "/opt/newer"

// TestContainerdClock: times do not decide whether the daemon has read its configuration. Time synchronization is
// set up at the same first boot, so the clock is an hour off before the configuration is written, or right after. First with
// 1.7, which has it in the main file, then with 2.3, which has it in a drop-in.
func TestContainerdClock(t *testing.T) {
	require.Tier(t, require.VM)
	install := programs(t, map[string]string{
		hostPath: "host/cmd/machineadm", runtimePlugin: "plugins/container-runtime/containerd",
	})
	c := clocked{containerd.StartVM(t, containerd.V17, install, upgrade(t, containerd.V23))}
	t.Run("1.7", func(t *testing.T) { c.steps(t, containerd.Config) })
	c.MustExec(t, "sh", "-c", "systemctl stop containerd; cp --remove-destination "+newer+"/* /usr/bin/; systemctl start containerd")
	c.Await(t)
	t.Run("2.3", func(t *testing.T) { c.steps(t, "/etc/containerd/conf.d/zz-machineadm.toml") })
}

// upgrade puts the programs of a version beside those that are used.
func upgrade(t *testing.T, v containerd.Version) func(root string) error {
	t.Helper()
	paths := map[string]string{}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		paths[name] = tools.For(t, "containerd-"+string(v)+"/"+name)
	}
	return func(root string) error {
		for name, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if err := write(root, newer+"/"+name, string(data), 0o755); err != nil {
				return err
			}
		}
		return nil
	}
}

// clocked is a node with a clock that the test sets.
type clocked struct{ *containerd.Daemon }

func (c clocked) invocation(t *testing.T) string {
	t.Helper()
	return c.MustExec(t, "systemctl", "show", "--property=InvocationID", "containerd.service").Stdout
}

// want writes the document with this level of the log.
func (c clocked) want(t *testing.T, level string) {
	t.Helper()
	c.Write(t, nodeFile, runtimeStream+level+"\n")
	c.MustExec(t, "chmod", "600", nodeFile)
}

func (c clocked) step(t *testing.T, by string) {
	t.Helper()
	c.MustExec(t, "date", "--set="+by)
}

func (c clocked) steps(t *testing.T, file string) {
	for _, step := range []struct{ name, before, after, level string }{
		{"ahead before", "+1 hour", "-1 hour", "debug"},
		{"ahead after", "+0 hour", "+1 hour", "warn"},
		{"back before", "-1 hour", "+1 hour", "info"},
		{"back after", "+0 hour", "-1 hour", "error"},
	} {
		t.Run(step.name, func(t *testing.T) {
			defer c.MustExec(t, "date", "--set=@"+now(t, c.Node))
			c.want(t, step.level)
			c.step(t, step.before)
			old := c.invocation(t)
			apply(t, c.Node, nodeFile, report.Changed)
			c.Await(t)
			begun := c.invocation(t)
			if begun == old {
				t.Error("the daemon was not restarted")
			}
			if dump := strings.ReplaceAll(c.Dump(t, containerd.Config).Stdout, "'", `"`); !strings.Contains(dump, `level = "`+step.level+`"`) {
				t.Errorf("the configuration:\n%s", dump)
			}
			c.step(t, step.after)
			apply(t, c.Node, nodeFile, report.Unchanged)
			if c.invocation(t) != begun {
				t.Error("the daemon was restarted without need")
			}
		})
	}
	t.Run("interrupted", func(t *testing.T) { c.interrupted(t, file) })
}

// interrupted: the files are new and the daemon is not, and the files' times prove nothing.
func (c clocked) interrupted(t *testing.T, file string) {
	defer c.MustExec(t, "date", "--set=@"+now(t, c.Node))
	c.want(t, "fatal")
	old := c.invocation(t)
	c.MustExec(t, "sh", "-c", `machineadm apply --path "$1" >/dev/null 2>&1 &
		until grep -q fatal "$2"; do kill -0 $! || exit 1; done
		kill -KILL $!`, "sh", nodeFile, file)
	c.step(t, "+1 hour")
	expect(t, c.Node, report.ExitOK, "machineadm", "apply", "--path", nodeFile)
	c.Await(t)
	if c.invocation(t) == old {
		t.Error("the daemon still runs with the old configuration")
	}
	c.step(t, "-1 hour")
	apply(t, c.Node, nodeFile, report.Unchanged)
}
