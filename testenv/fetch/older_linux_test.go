package fetch

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/download"
	"github.com/machineadm/machineadm/testenv/tools"
)

// TestOlderRelease: a mirror has an older release, which the same key has signed. A new machine has installed none that is newer,
// so the arguments of the examples refuse it.
func TestOlderRelease(t *testing.T) {
	t.Parallel()
	dir, key := t.TempDir(), download.NewKey(t)
	old := download.Release{Version: "v0.0.9", Sequence: 1, Key: key}
	old.Write(t, dir)
	require.NoError(t, tools.Products(t.Context(), dir, map[string]string{"machineadm": "host/cmd/machineadm"}))
	built, err := os.ReadFile(filepath.Join(dir, "machineadm"))
	require.NoError(t, err)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		name := filepath.Base(r.URL.Path)
		if strings.HasPrefix(name, "machineadm-v0.1.0-linux-") {
			name = "machineadm"
		}
		http.ServeFile(w, r, filepath.Join(dir, name))
	})
	filled := func(name string) string {
		data, err := os.ReadFile(example(name))
		require.NoError(t, err)
		text := regexp.MustCompile(`RWS[0-9A-Za-z+/]+`).ReplaceAllString(string(data), key.Public().String())
		return regexp.MustCompile(`https?://(releases|mirror)\.example\.com/machineadm`).ReplaceAllString(text, url)
	}
	refused := func(to string, code int, text string) {
		t.Helper()
		assert.Equal(t, report.ExitUntrusted, code, text)
		assert.Contains(t, text, "the location has the release v0.0.9, and not v0.1.0")
		assert.NoDirExists(t, to)
	}

	t.Run("cloud-init", func(t *testing.T) {
		t.Parallel()
		raw, err := document.JSON("cloud-init.yaml", []byte(filled("cloud-init.yaml")))
		require.NoError(t, err)
		var u userData
		require.NoError(t, json.Unmarshal(raw, &u))
		var argv []string
		require.NoError(t, json.Unmarshal(u.RunCmd[len(u.RunCmd)-2], &argv))
		require.Equal(t, []string{"sh", u.WriteFiles[1].Path}, argv[:2])
		b := newBench(t, url)
		b.head.Version, b.head.AMD64, b.head.ARM64 = "v0.1.0", digest(built), digest(built)
		to := filepath.Join(b.dir, "release")
		b.args = append(argv[2:], "--to", to)
		got := b.run()
		refused(to, got.code, got.errOut)
	})
	t.Run("ignition", func(t *testing.T) {
		t.Parallel()
		b := newBench(t) // of a directory that no other user can write
		line := regexp.MustCompile(`ExecStart=/opt/bin/machineadm (.*)`).FindStringSubmatch(filled("ignition.bu"))
		require.Len(t, line, 2)
		to := filepath.Join(b.dir, "release")
		argv := append(strings.Fields(line[1]), "--key", key.Public().String(), "--to", to) // the key is a file of the example
		c := exec.CommandContext(t.Context(), filepath.Join(dir, "machineadm"), argv...)
		out, _ := c.CombinedOutput() // the exit code is compared
		refused(to, c.ProcessState.ExitCode(), string(out))
	})
}
