package nodes_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
)

func TestCloudInit(t *testing.T) {
	t.Parallel()
	userData := fmt.Sprintf(`#cloud-config
write_files:
  - path: /run/plain.txt
    permissions: "0600"
    content: plain
  - path: /var/lib/packed.txt
    encoding: gz+b64
    content: %s
runcmd:
  - [sh, -c, 'cat /var/lib/packed.txt >/var/lib/ran; echo run >>/var/lib/runs']
`, gzipBase64(t, "packed"))
	for _, suite := range nodes.Suites() {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			n := nodes.Boot(t, nodes.Options{Suite: suite, Prepare: nodes.CloudInitSeed(userData)})
			status := n.MustExec(t, "cloud-init", "status", "--wait", "--long").Stdout
			for _, want := range []string{"status: done", "DataSourceNoCloud"} {
				if !strings.Contains(status, want) {
					t.Errorf("cloud-init status has no %q:\n%s", want, status)
				}
			}
			nodestest.Files(t, n, map[string]string{"/run/plain.txt": "plain", "/var/lib/ran": "packed", "/var/lib/runs": "run\n"})
			for script, want := range map[string]string{
				"stat -c %a /run/plain.txt":                        "600",
				"hostname":                                         "node",
				"systemctl is-system-running":                      "running",
				"systemctl --failed --quiet":                       "",
				"stat -c %a /var/lib/cloud/seed/nocloud/user-data": "600",
			} {
				if got := strings.TrimSpace(n.MustExec(t, "sh", "-c", script).Stdout); got != want {
					t.Errorf("%s: %q, want %q", script, got, want)
				}
			}
			if err := n.Reboot(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Logf("up again in %s", n.BootTime())
			nodestest.Files(t, n, map[string]string{"/var/lib/runs": "run\n"}) // once per instance
		})
	}
}

func gzipBase64(t *testing.T, s string) string {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}
