package demo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

// build makes the binaries that the node gets.
func build(t *testing.T, into string) {
	t.Helper()
	if err := tools.All(t.Context(), into); err != nil {
		t.Fatal(err)
	}
}

// show runs a command in a node, as an operator sees it.
func show(t testing.TB, n *nodes.Node, code int, argv ...string) string {
	t.Helper()
	fmt.Printf("\n# %s\n", strings.Join(argv, " "))
	r, err := n.Exec(t.Context(), argv...)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Print(r.Stdout, r.Stderr)
	if r.ExitCode != code {
		t.Fatalf("%q: exit %d, want %d", argv, r.ExitCode, code)
	}
	return r.Stdout
}

// TestNode shows the same stream as make demo, on a live machine, and what is left of it after a reboot.
//
//machineadm:core
func TestNode(t *testing.T) {
	bin := t.TempDir()
	build(t, bin)
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie})
	for _, file := range []struct{ from, to string }{
		{filepath.Join(bin, "machineadm"), "/usr/bin/machineadm"},
		{filepath.Join(bin, "machineadm-sysctl-plugin-procfs"), "/usr/libexec/machineadm/machineadm-sysctl-plugin-procfs"},
		{"../../examples/node.yaml", "/run/node.yaml"},
	} {
		mode := os.FileMode(0o755)
		if strings.HasSuffix(file.to, ".yaml") {
			mode = 0o600
		}
		if err := n.CopyIn(t.Context(), file.from, file.to, mode); err != nil {
			t.Fatal(err)
		}
	}
	show(t, n, 0, "machineadm", "plugins", "inspect")
	show(t, n, 10, "machineadm", "plan", "--path", "/run/node.yaml")
	show(t, n, 0, "machineadm", "apply", "--path", "/run/node.yaml")
	show(t, n, 0, "machineadm", "plan", "--path", "/run/node.yaml")
	show(t, n, 0, "machineadm", "status")
	show(t, n, 0, "cat", "/run/machineadm/report.json")
	if err := n.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	fmt.Println("\n(the node was rebooted; the values come from the files now)")
	if got := show(t, n, 0, "cat", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/core/somaxconn"); got != "1\n8192\n" {
		t.Errorf("after the reboot: %q", got)
	}
}

// TestDemo runs make demo's script under an unusual umask, without privileges where possible.
func TestDemo(t *testing.T) {
	root := t.TempDir()
	build(t, filepath.Join(root, "bin"))
	for from, to := range map[string]string{"demo.sh": "testenv/demo/demo.sh", "../../examples/node.yaml": "examples/node.yaml"} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(root, to)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := require.WriteProgram(at, data); err != nil {
			t.Fatal(err)
		}
	}
	for _, umask := range []string{"000", "002", "077"} {
		c := exec.CommandContext(t.Context(), "bash", "-c", "umask "+umask+" && exec testenv/demo/demo.sh")
		c.Dir = root
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("umask %s: %v\n%s", umask, err, out)
		}
		for _, want := range []string{"2 documents: no configuration errors", "2 documents: 2 to change", "2 documents: 0 to change", `"kind": "RunReport"`} {
			if !strings.Contains(string(out), want) {
				t.Errorf("umask %s: the demo does not show %q:\n%s", umask, want, out)
			}
		}
	}
}
