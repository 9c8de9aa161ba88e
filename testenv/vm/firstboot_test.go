package vm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
)

// TestFirstBoot: cloud-init prepares a machine with the recommended template, up to the sentinel and the report; then the
// machine shuts down in order.
func TestFirstBoot(t *testing.T) {
	require.Tier(t, require.VM)
	install := product(t)
	for _, suite := range nodes.Suites() {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			n := nodes.Boot(t, nodes.Options{Suite: suite, VM: true, Prepare: nodes.InOrder(
				install, nodes.CloudInitSeed(cloudConfig(t, "/etc/machineadm/node.yaml")),
			)})
			status := n.MustExec(t, "cloud-init", "status", "--long").Stdout
			for _, want := range []string{"status: done", "DataSourceNoCloud"} {
				if !strings.Contains(status, want) {
					t.Errorf("cloud-init status has no %q:\n%s\n%s", want, status, n.MustExec(t, "cat", "/var/log/cloud-init-output.log").Stdout)
				}
			}
			n.MustExec(t, "test", "-s", sentinel)
			r := lastReport(t, n)
			if r.Outcome != report.RunSucceeded || r.ExitCode != report.ExitOK || len(r.Documents) != 2 || r.BootID == "" {
				t.Fatalf("report: %+v", r)
			}
			for _, d := range r.Documents {
				if d.Outcome != report.Changed || d.Provider != "procfs" || d.Plugin.SHA256 == "" {
					t.Errorf("document: %+v", d)
				}
			}
			live(t, n, values(), modules()...)
			if out := n.MustExec(t, "machineadm", "status").Stdout; !strings.HasPrefix(out, "Succeeded: 2 documents") {
				t.Errorf("status:\n%s", out)
			}
			began := time.Now()
			if err := n.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Logf("stopped in %s", time.Since(began).Round(time.Millisecond))
			if left := nodestest.Traces(t, n.Name()); len(left) > 0 {
				t.Errorf("left of the node:\n%s", strings.Join(left, "\n"))
			}
		})
	}
}

func cloudConfig(t *testing.T, path string) string {
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
    content: %s
    owner: root:root
    path: %s
    permissions: '0600'
runcmd:
  - /usr/bin/machineadm --bootstrap --path %s
`, base64.StdEncoding.EncodeToString(packed.Bytes()), path, path)
}
