// Package typescript shows a vendor's plugin in TypeScript: written from contract/SPEC.md and plugin.proto alone, built
// by npm into one executable file, which passes the conformance kit and runs in the host with Debian's Node.js.
package typescript

//machineadm:tier system

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/foreign"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	plugin  = "machineadm-monitoring-agent-plugin-acme"
	libexec = "/usr/libexec/machineadm/"
	token   = "/etc/acme-agent/token"
	canary  = "c4n4ry-of-the-agent"
	stream  = `apiVersion: agent.example.org/v1
kind: MonitoringAgent
metadata: {name: site}
spec:
  endpoint: https://metrics.example.org
  token: {value: ` + canary + `}
  labels: {site: north}
`
)

// programs are built by TestMain; a test binary has no other way to pass something to its tests.
var programs foreign.Programs

func TestMain(m *testing.M) { os.Exit(foreign.Main(m, &programs)) }

// build builds a copy of the plugin by its own script, so that the checkout stays as it is, and returns the file.
func build(t *testing.T) string {
	t.Helper()
	require.Tier(t, require.System)
	for _, tree := range []string{"contract/pluginv1/pb", "contract/v1alpha1/schema"} { // build.sh reads them
		if err := require.Record("tree", tree); err != nil {
			t.Fatal(err)
		}
	}
	modules := tools.NodeModules(t, "plugin")
	contract, err := filepath.Abs("../../contract")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := foreign.Copy("plugin", dir); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "node_modules") // of the checkout, where the plugin was built there
	if err := errors.Join(os.RemoveAll(link), os.Symlink(modules, link)); err != nil {
		t.Fatal(err)
	}
	compile := exec.CommandContext(t.Context(), "sh", "build.sh", contract)
	compile.Dir = dir
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("build.sh: %v\n%s", err, out)
	}
	return filepath.Join(dir, "dist", plugin)
}

//machineadm:core
func TestPlugin(t *testing.T) {
	t.Parallel()
	require.Root(t)
	file := build(t)
	for _, suite := range nodes.Suites() { // Node.js 18 and 20
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			n := foreign.Plugin{
				Programs: &programs,
				Path:     libexec + plugin,
				Cases:    "testdata/conformance",
				Layer:    nodes.NodeJS,
				Install: func(root string) error {
					data, err := os.ReadFile(file)
					if err != nil {
						return err
					}
					if err := os.MkdirAll(filepath.Join(root, libexec), 0o755); err != nil { //nolint:gosec // a directory of the system
						return err
					}
					return os.WriteFile(filepath.Join(root, libexec, plugin), data, 0o755) //nolint:gosec // a program
				},
			}.Boot(t, suite, stream, canary)
			t.Run("host", func(t *testing.T) { hosted(t, n) })
			t.Run("violations", func(t *testing.T) { violations(t, n) })
			if suite == nodes.Bookworm { // minutes, because each start of Node.js takes its time
				t.Run("conformance", func(t *testing.T) { n.Conforms(t) })
				return
			}
			t.Run("stop", func(t *testing.T) { // each has another gRPC
				n.MustExec(t, "machineadm-conformance", "--plugin", libexec+plugin, "--cases", foreign.Cases, "--check", "stop")
			})
		})
	}
}

// hosted runs the plugin in the host, on the live node.
func hosted(t *testing.T, n *foreign.Node) {
	if got := n.Host(t, report.ExitOK, "plugins", "inspect").Stdout; !strings.Contains(got, "absent: acme-agent is not installed") {
		t.Errorf("plugins inspect:\n%s", got)
	}
	if got := n.Host(t, report.ExitOK, "explain", "MonitoringAgent.spec.intervalSeconds").Stdout; !strings.Contains(got, "Seconds between two reports") {
		t.Errorf("explain:\n%s", got)
	}
	plan := n.Host(t, report.ExitDiffers, "plan", "--path", foreign.Stream).Stdout
	for _, want := range []string{`+  "endpoint": "https://metrics.example.org",`, "create " + token, "content differs"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan has no %q:\n%s", want, plan)
		}
	}
	for _, want := range []string{"Changed", "Unchanged"} {
		n.Host(t, report.ExitOK, "apply", "--path", foreign.Stream)
		if got := n.Outcomes(t); got != "MonitoringAgent/site (acme) "+want {
			t.Errorf("outcomes: %s, want %s", got, want)
		}
	}
	n.MustExec(t, "chmod", "0644", token)
	n.Host(t, report.ExitOK, "apply", "--path", foreign.Stream)
	if got := n.MustExec(t, "stat", "-c", "%a %U", token).Stdout; got != "600 root\n" {
		t.Errorf("mode and owner of the token: %s", got)
	}
	n.KeepsSecret(t, token, foreign.Stream)
}

// violations: each is reported with its position in the stream.
func violations(t *testing.T, n *foreign.Node) {
	wrong := strings.NewReplacer("https:", "ftp:", canary, `"`+canary+` "`, "site: north", `"a b": north`).Replace(stream)
	if _, err := n.ExecInput(t.Context(), strings.NewReader(wrong), "sh", "-c", "umask 077; cat >/run/wrong.yaml"); err != nil {
		t.Fatal(err)
	}
	got := n.Host(t, report.ExitUsage, "validate", "--path", "/run/wrong.yaml").Stderr
	for _, want := range []string{
		"wrong.yaml:5:3: MonitoringAgent/site: spec.endpoint: must match pattern",
		"hint: The HTTPS URL to which the agent reports",
		"wrong.yaml:6:11: MonitoringAgent/site: spec.token.value: must match pattern",
		`wrong.yaml:7:12: MonitoringAgent/site: spec.labels["a b"]: is not known`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("validate does not print %q:\n%s", want, got)
		}
	}
}
