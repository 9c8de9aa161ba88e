// Package firstboot tests the main use on real machines: a systemd unit or cloud-init prepares a freshly booted Debian
// node, which keeps its state after a reboot.
package firstboot

//machineadm:tier system

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	sentinel = "/run/cluster-api/bootstrap-success.complete"
	libexec  = "/usr/libexec/machineadm"
)

// stream is the document stream of every test: keys of a network namespace, which a container may set.
const stream = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Sysctl
metadata: {name: kubernetes}
spec:
  provider: procfs
  profiles: [kubernetes]
---
apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Sysctl
metadata: {name: tuning}
spec:
  parameters:
    net.core.somaxconn: 8191
    net/ipv4/tcp_rmem: "4096 131072 6291456"
`

// values are the kernel's values after the stream.
func values() map[string]string {
	return map[string]string{
		"net/ipv4/ip_forward": "1", "net/bridge/bridge-nf-call-iptables": "1", "net/bridge/bridge-nf-call-ip6tables": "1",
		"net/core/somaxconn": "8191", "net/ipv4/tcp_rmem": "4096\t131072\t6291456",
	}
}

// binaries returns a directory with the host and the plugins.
func binaries(t *testing.T) string {
	t.Helper()
	require.Tier(t, require.System)
	dir := t.TempDir()
	if err := tools.Products(t.Context(), dir, map[string]string{
		"machineadm":                      "host/cmd/machineadm",
		"machineadm-sysctl-plugin-procfs": "plugins/sysctl/procfs",
		"machineadm-noop-plugin-test":     "testenv/noop",
	}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// install installs the product like a package.
func install(dir, root string) error {
	for name, at := range map[string]string{
		"machineadm":                      "/usr/bin/machineadm",
		"machineadm-sysctl-plugin-procfs": libexec + "/machineadm-sysctl-plugin-procfs",
		"machineadm-noop-plugin-test":     libexec + "/machineadm-noop-plugin-test",
	} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := write(root, at, string(data), 0o755); err != nil {
			return err
		}
	}
	return nil
}

func write(root, path, content string, mode os.FileMode) error {
	at := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.WriteFile(at, []byte(content), mode)
}

const unit = `[Unit]
Description=Prepare this machine to be a Kubernetes node
After=network.target
[Service]
Type=oneshot
ExecStart=/usr/bin/machineadm --bootstrap --path /etc/machineadm/node.yaml
# Only the host is stopped: it lets its plugins finish the change in hand.
KillMode=mixed
[Install]
WantedBy=multi-user.target
`

// atBoot makes the node apply /etc/machineadm/node.yaml at every boot.
func atBoot(root string) error {
	if err := write(root, "/etc/systemd/system/machineadm.service", unit, 0o644); err != nil {
		return err
	}
	wants := filepath.Join(root, "/etc/systemd/system/multi-user.target.wants")
	if err := os.MkdirAll(wants, 0o755); err != nil {
		return err
	}
	return os.Symlink("/etc/systemd/system/machineadm.service", filepath.Join(wants, "machineadm.service"))
}

//machineadm:core
func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	dir := binaries(t)
	for _, suite := range nodes.Suites() {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			n := nodes.Boot(t, nodes.Options{Suite: suite, Prepare: nodes.InOrder(
				func(root string) error { return install(dir, root) },
				func(root string) error { return write(root, "/etc/machineadm/node.yaml", stream, 0o600) },
				atBoot,
			)})
			if got := strings.TrimSpace(n.MustExec(t, "systemctl", "show", "-P", "Result", "machineadm.service").Stdout); got != "success" {
				t.Fatalf("the unit ended with %s:\n%s", got, n.MustExec(t, "journalctl", "-u", "machineadm", "--no-pager").Stdout)
			}
			prepared(t, n)
			again(t, n)
			// The files alone must restore the values: machineadm does not run in this boot.
			n.MustExec(t, "systemctl", "disable", "machineadm.service")
			if err := n.Reboot(t.Context()); err != nil {
				t.Fatal(err)
			}
			live(t, n)
			if r, err := n.Exec(t.Context(), "test", "-e", sentinel); err != nil || r.ExitCode == 0 {
				t.Errorf("the sentinel in /run exists after a reboot in which nothing ran (%v)", err)
			}
		})
	}
}

// prepared checks the results of a successful run.
func prepared(t *testing.T, n *nodes.Node) {
	t.Helper()
	live(t, n)
	n.MustExec(t, "test", "-s", sentinel)
	r := lastReport(t, n)
	if r.Outcome != report.RunSucceeded || r.ExitCode != report.ExitOK || len(r.Documents) != 2 {
		t.Fatalf("report: %+v", r)
	}
	for _, d := range r.Documents {
		if d.Outcome != report.Changed || d.Provider != "procfs" || d.Plugin.SHA256 == "" {
			t.Errorf("document: %+v", d)
		}
	}
	if r.BootID == "" || r.StreamDigest == "" || r.Host.Distribution != "debian" {
		t.Errorf("report: %+v", r)
	}
	for path, mode := range map[string]string{
		"/run/machineadm/report.json": "644", "/var/lib/machineadm": "700",
		"/etc/sysctl.d/99-machineadm-kubernetes.conf": "644", "/etc/modules-load.d/machineadm-kubernetes.conf": "644",
	} {
		if got := strings.TrimSpace(n.MustExec(t, "stat", "-c", "%a", path).Stdout); got != mode {
			t.Errorf("%s has mode %s, want %s", path, got, mode)
		}
	}
	if out := n.MustExec(t, "machineadm", "status").Stdout; !strings.HasPrefix(out, "Succeeded: 2 documents") {
		t.Errorf("status:\n%s", out)
	}
}

func live(t *testing.T, n *nodes.Node) {
	t.Helper()
	for key, want := range values() {
		if got := strings.TrimSpace(n.MustExec(t, "cat", "/proc/sys/"+key).Stdout); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

func lastReport(t *testing.T, n *nodes.Node) report.Report {
	t.Helper()
	data, err := n.CopyOut(t.Context(), "/run/machineadm/report.json")
	if err != nil {
		t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// again applies the stream once more: nothing changes, and the sentinel is not touched.
func again(t *testing.T, n *nodes.Node) {
	t.Helper()
	out := n.MustExec(t, "machineadm", "plan", "--path", "/etc/machineadm/node.yaml").Stdout
	if !strings.Contains(out, "2 documents: 0 to change, 2 unchanged, 0 deferred") {
		t.Errorf("plan:\n%s", out)
	}
	n.MustExec(t, "machineadm", "apply", "--path", "/etc/machineadm/node.yaml")
	for _, d := range lastReport(t, n).Documents {
		if d.Outcome != report.Unchanged {
			t.Errorf("a second apply: %+v", d)
		}
	}
	n.MustExec(t, "test", "-s", sentinel)
}

// TestCloudInit passes the stream as the proposal's template does, and as the documentation recommends.
func TestCloudInit(t *testing.T) {
	t.Parallel()
	dir := binaries(t)
	const path, recommended = "/tmp/machineadm_config.yaml", "/etc/machineadm/node.yaml"
	unit, err := os.ReadFile("../../installer/linux/system/machineadm-firstboot.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, suite := range nodes.Suites() {
		for name, userData := range map[string]string{
			// Literally, with the dot after the content as in the proposal.
			"proposal":    cloudConfig(t, path, "0644", ".", "/usr/bin/machineadm --bootstrap --path "+path),
			"recommended": cloudConfig(t, recommended, "0600", "", "systemctl enable --now machineadm-firstboot.service"),
		} {
			t.Run(string(suite)+"/"+name, func(t *testing.T) {
				t.Parallel()
				n := nodes.Boot(t, nodes.Options{Suite: suite, Prepare: nodes.InOrder(
					func(root string) error { return install(dir, root) },
					func(root string) error {
						return write(root, "/usr/lib/systemd/system/machineadm-firstboot.service", string(unit), 0o644)
					},
					nodes.CloudInitSeed(userData),
				)})
				status := n.MustExec(t, "cloud-init", "status", "--long").Stdout
				if !strings.Contains(status, "status: done") {
					t.Errorf("cloud-init:\n%s\n%s", status, n.MustExec(t, "cat", "/var/log/cloud-init-output.log").Stdout)
				}
				prepared(t, n)
				if err := n.Reboot(t.Context()); err != nil { // cloud-init runs its commands at first boot alone
					t.Fatal(err)
				}
				live(t, n)
			})
		}
	}
}

func cloudConfig(t *testing.T, path, mode, dot, command string) string {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(stream)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`#cloud-config
write_files:
  - encoding: gz+b64
    content: %s%s
    owner: root:root
    path: %s
    permissions: '%s'
runcmd:
  - %s
`, base64.StdEncoding.EncodeToString(packed.Bytes()), dot, path, mode, command)
}

// TestNoSentinelWithoutSuccess: only a live run of all phases in which every document succeeded may write it.
func TestNoSentinelWithoutSuccess(t *testing.T) {
	t.Parallel()
	dir := binaries(t)
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, Prepare: nodes.InOrder(
		func(root string) error { return install(dir, root) },
		func(root string) error { return write(root, "/etc/machineadm/node.yaml", stream, 0o600) },
		func(root string) error {
			bad := stream + "---\n" + strings.ReplaceAll(strings.SplitN(stream, "---\n", 2)[1], "net.core.somaxconn: 8191", "net.core.no_such_key: 1")
			return write(root, "/etc/machineadm/bad.yaml", strings.Replace(bad, "{name: tuning}", "{name: more}", 1), 0o600)
		},
		func(root string) error {
			return write(root, "/etc/machineadm/halfway.yaml", stream+"---\n"+noop("fails", "touch: [/var/fails], apply: fail"), 0o600)
		},
		func(root string) error { return os.MkdirAll(filepath.Join(root, "/srv/image/etc"), 0o755) },
	)})
	absent := func(after string) {
		t.Helper()
		if r, err := n.Exec(t.Context(), "test", "-e", sentinel); err != nil || r.ExitCode == 0 {
			t.Errorf("%s there is a sentinel (%v)", after, err)
		}
	}
	expect := func(code int, argv ...string) nodes.Result {
		t.Helper()
		r, err := n.Exec(t.Context(), argv...)
		if err != nil {
			t.Fatal(err)
		}
		if r.ExitCode != code {
			t.Fatalf("%q: exit %d, want %d\nstdout: %s\nstderr: %s", argv, r.ExitCode, code, r.Stdout, r.Stderr)
		}
		return r
	}
	expect(report.ExitOK, "machineadm", "apply", "--path", "/etc/machineadm/node.yaml", "--root", "/srv/image")
	absent("after a run on an image")
	expect(report.ExitOK, "machineadm", "apply", "--path", "/etc/machineadm/node.yaml", "--phase", "provisioning")
	absent("after a run of one phase")
	got := expect(report.ExitPrecondition, "machineadm", "--bootstrap", "--path", "/etc/machineadm/bad.yaml")
	if !strings.Contains(got.Stderr, "net.core.no_such_key") || !strings.Contains(got.Stderr, "ignoreMissing") {
		t.Errorf("the error lacks the key or the hint:\n%s", got.Stderr)
	}
	absent("after a failed run")
	expect(report.ExitOK, "machineadm", "apply", "--path", "/etc/machineadm/node.yaml")
	n.MustExec(t, "test", "-s", sentinel)
	// A run that changes nothing leaves the sentinel of the earlier one; one that fails after its first change removes it.
	n.MustExec(t, "rm", "/etc/sysctl.d/99-machineadm-kubernetes.conf")
	expect(report.ExitPrecondition, "machineadm", "apply", "--path", "/etc/machineadm/bad.yaml")
	n.MustExec(t, "test", "-s", sentinel)
	expect(report.ExitPrecondition, "machineadm", "apply", "--path", "/etc/machineadm/halfway.yaml")
	absent("after a run that failed half-way")
}
