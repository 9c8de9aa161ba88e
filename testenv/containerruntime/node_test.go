package containerruntime

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/containerd"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	pluginBinary = "machineadm-container-runtime-plugin-containerd"
	stream       = "/etc/machineadm/node.yaml"
	header       = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: ContainerRuntime\nmetadata: {name: node}\nspec:\n  provider: containerd\n"
)

// node is a booted machine with a containerd and machineadm.
type node struct{ *containerd.Daemon }

// start boots a node with a containerd of the version, the host and the plugin.
func start(t *testing.T, v containerd.Version) node {
	t.Helper()
	require.Tier(t, require.System)
	built := t.TempDir()
	if err := tools.Products(t.Context(), built, map[string]string{
		"machineadm": "host/cmd/machineadm", pluginBinary: "plugins/container-runtime/containerd",
	}); err != nil {
		t.Fatal(err)
	}
	n := node{containerd.Start(t, v)}
	n.MustExec(t, "mkdir", "-p", "/usr/libexec/machineadm", "/etc/machineadm")
	for from, to := range map[string]string{"machineadm": "/usr/bin/machineadm", pluginBinary: "/usr/libexec/machineadm/" + pluginBinary} {
		if err := n.CopyIn(t.Context(), filepath.Join(built, from), to, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// run passes a specification (indented by two) to a command of the host.
func (n node) run(t *testing.T, command, spec string) nodes.Result {
	t.Helper()
	n.Write(t, stream, header+spec)
	n.MustExec(t, "chmod", "600", stream)
	r, err := n.Exec(t.Context(), "machineadm", command, "--path", stream)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// apply applies the specification twice; the second run must change nothing and not restart the daemon.
func (n node) apply(t *testing.T, spec string) {
	t.Helper()
	r := n.run(t, "apply", spec)
	if r.ExitCode != report.ExitOK {
		t.Fatalf("apply: exit status %d\n%s%s\n%s\n%s", r.ExitCode, r.Stdout, r.Stderr, n.details(t), n.files(t))
	}
	n.Await(t)
	invocation := n.invocation(t)
	again := n.run(t, "apply", spec)
	if again.ExitCode != report.ExitOK || !strings.Contains(again.Stdout, "1 unchanged") || n.invocation(t) != invocation {
		t.Errorf("the second run: exit status %d\n%s%s\n%s", again.ExitCode, again.Stdout, again.Stderr, n.files(t))
	}
	if plan := n.run(t, "plan", spec); plan.ExitCode != report.ExitOK {
		t.Errorf("the plan afterwards: exit status %d\n%s", plan.ExitCode, plan.Stdout)
	}
}

// refused applies what cannot be applied; the daemon keeps its state.
func (n node) refused(t *testing.T, spec string, code int, parts ...string) {
	t.Helper()
	before, config := n.invocation(t), n.files(t)
	r := n.run(t, "apply", spec)
	if r.ExitCode != code {
		t.Errorf("exit status %d, want %d\n%s%s", r.ExitCode, code, r.Stdout, r.Stderr)
	}
	for _, part := range parts {
		if !strings.Contains(r.Stdout+r.Stderr, part) {
			t.Errorf("%q is missing in:\n%s%s", part, r.Stdout, r.Stderr)
		}
	}
	if n.files(t) != config {
		t.Errorf("the files are not as before:\n%s\nwere:\n%s", n.files(t), config)
	}
	if before != n.invocation(t) {
		t.Log("the daemon was restarted on the way")
	}
	n.Await(t)
}

func (n node) invocation(t *testing.T) string {
	t.Helper()
	return n.MustExec(t, "systemctl", "show", "--property=InvocationID", "containerd.service").Stdout
}

func (n node) details(t *testing.T) string {
	t.Helper()
	return n.Bash(t, "cat /var/lib/machineadm/reports/*/details.json /run/machineadm/details.json 2>/dev/null | tail -n 40; journalctl -u containerd -n 15 --no-pager -o cat").Stdout
}

// files is everything below /etc/containerd and the drop-ins of the unit, with modes.
func (n node) files(t *testing.T) string {
	t.Helper()
	return n.Bash(t, `find /etc/containerd /etc/systemd/system/containerd.service.d -type f 2>/dev/null | sort | while read -r f; do echo "== $f $(stat -c %a "$f")"; cat "$f"; done`).Stdout
}

// reset replaces the configuration and restarts the daemon with it.
func (n node) reset(t *testing.T, files map[string]string) {
	t.Helper()
	n.MustExec(t, "sh", "-c", "rm -rf /etc/containerd /etc/systemd/system/containerd.service.d; mkdir /etc/containerd; systemctl daemon-reload")
	for path, text := range files {
		n.Write(t, path, text)
	}
	n.MustExec(t, "sh", "-c", "systemctl reset-failed containerd 2>/dev/null; systemctl restart containerd")
	n.Await(t)
}

// dumped returns the configuration as the installed program reads it.
func (n node) dumped(t *testing.T) map[string]any {
	t.Helper()
	r := n.Dump(t, containerd.Config)
	if r.ExitCode != 0 {
		t.Fatalf("config dump: exit status %d\n%s\n%s", r.ExitCode, r.Stderr, n.files(t))
	}
	var tree map[string]any
	if err := toml.Unmarshal([]byte(r.Stdout), &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// at is a value of a tree as JSON, "(none)" when there is none.
func at(t *testing.T, tree map[string]any, path ...string) string {
	t.Helper()
	var here any = tree
	for _, key := range path {
		table, _ := here.(map[string]any)
		var ok bool
		if here, ok = table[key]; !ok {
			return "(none)"
		}
	}
	text, err := json.Marshal(here)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// place is the path of a setting in the dump of a version.
func place(v containerd.Version, setting string) []string {
	const one = "io.containerd.grpc.v1.cri"
	cri := func(two string, old, now []string) []string {
		if v.Packaged() {
			return append([]string{"plugins", one}, old...)
		}
		return append([]string{"plugins", "io.containerd.cri.v1." + two}, now...)
	}
	same := func(two string, keys ...string) []string { return cri(two, keys, keys) }
	switch setting {
	case "cgroup":
		return same("runtime", "containerd", "runtimes", "runc", "options", "SystemdCgroup")
	case "runtimeType":
		return same("runtime", "containerd", "runtimes", "runc", "runtime_type")
	case "sandbox":
		return cri("images", []string{"sandbox_image"}, []string{"pinned_images", "sandbox"})
	case "snapshotter":
		return cri("images", []string{"containerd", "snapshotter"}, []string{"snapshotter"})
	case "downloads":
		if !v.Packaged() { // it is the transfer service that pulls
			return []string{"plugins", "io.containerd.transfer.v1.local", "max_concurrent_downloads"}
		}
		return same("images", "max_concurrent_downloads")
	case "certs":
		return same("images", "registry", "config_path")
	case "confDir":
		return same("runtime", "cni", "conf_dir")
	case "log":
		return []string{"debug", "level"}
	case "metrics":
		if v == containerd.V23 {
			return []string{"plugins", "io.containerd.server.v1.metrics", "address"}
		}
		return []string{"metrics", "address"}
	case "oom":
		return []string{"oom_score"}
	}
	panic(fmt.Sprintf("no such setting: %s", setting))
}

func (n node) expect(t *testing.T, v containerd.Version, want map[string]string) {
	t.Helper()
	tree := n.dumped(t)
	for name, value := range want {
		if got := at(t, tree, place(v, name)...); got != value {
			t.Errorf("%s is %s, want %s\n%s", name, got, value, n.files(t))
		}
	}
}
