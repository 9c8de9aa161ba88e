package imagebuilder

//machineadm:tier system

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/download"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

// TestRelease installs a signed release on a node without packages, and checks the image by the goss file for releases. The node
// is taken for another distribution too, which has no package.
func TestRelease(t *testing.T) {
	t.Parallel()
	needs.Tier(t, needs.System)
	dir, key := t.TempDir(), download.NewKey(t)
	require.NoError(t, tools.Products(t.Context(), dir, map[string]string{
		"bin/machineadm": "host/cmd/machineadm", "plugins/machineadm-sysctl-plugin-procfs": "plugins/sysctl/procfs",
	}))
	r := download.Release{Version: "v0.1.0", Sequence: 1, Key: key}
	for _, name := range []string{"bin/machineadm", "plugins/machineadm-sysctl-plugin-procfs"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		r.Members = append(r.Members, download.Regular(name, string(data)))
	}
	program := r.Members[0].Content
	n := nodes.Boot(t, nodes.Options{
		Suite: nodes.Bookworm, Layers: []nodes.Layer{nodes.Ansible},
		Prepare: func(root string) error {
			if err := prepare(root, nil); err != nil {
				return err
			}
			r.Write(t, filepath.Join(root, "srv"))
			sysctl, _, _ := strings.Cut(stream, "---\n")
			if err := os.WriteFile(filepath.Join(root, "srv/node.yaml"), []byte(sysctl), 0o600); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(root, "srv", "machineadm-v0.1.0-linux-"+runtime.GOARCH), []byte(program), 0o600)
		},
	})
	n.MustExec(t, "systemd-run", "--quiet", "python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", "/srv", "8080")
	got := tryPlay(t, n, `{"machineadm_stream": "/srv/node.yaml", "machineadm_packages": ["/srv/x.rpm"], "ansible_os_family": "Suse"}`)
	assert.NotZero(t, got.ExitCode)
	assert.Contains(t, got.Stdout, "Set machineadm_release on Suse.")
	play(t, n, fmt.Sprintf(`{"machineadm_stream": "/srv/node.yaml", "machineadm_release": "http://127.0.0.1:8080", "ansible_os_family": "Suse",
		"machineadm_version": "v0.1.0", "machineadm_key": "%s", "machineadm_sha256": {"%s": "%s"}}`,
		key.Public(), runtime.GOARCH, download.Digest([]byte(program))))
	checkImageBy(t, n, "goss-machineadm-release.yaml")
}
