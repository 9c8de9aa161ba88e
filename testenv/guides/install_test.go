package guides

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

// TestInstall installs into an empty directory, runs what is installed from there, and removes it.
func TestInstall(t *testing.T) {
	t.Parallel()
	needs.Linux(t)
	run := func(argv ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), needs.Tool(t, argv[0]), argv[1:]...)
		c.Dir = root
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%q\n%s", argv, out)
		return string(out)
	}
	bin, man, dest := t.TempDir(), t.TempDir(), t.TempDir()
	require.NoError(t, tools.All(t.Context(), bin))
	run("bash", "testenv/tools/build.sh", "man", man)
	for prefix, arguments := range map[string][]string{"/usr": nil, "/opt/x": {"PREFIX=/opt/x"}} {
		run(append([]string{"make", "install", "BIN=" + bin, "MAN=" + man, "DESTDIR=" + dest}, arguments...)...)
		at := dest + prefix
		for file, mode := range map[string]fs.FileMode{
			"bin/machineadm": 0o755,
			"libexec/machineadm/machineadm-sysctl-plugin-procfs":                0o755,
			"libexec/machineadm/machineadm-container-runtime-plugin-containerd": 0o755,
			"share/machineadm/schema/document.json":                             0o644,
			"share/man/man8/machineadm.8":                                       0o644,
			"share/man/man8/machineadm-plugins-new.8":                           0o644,
			"share/bash-completion/completions/machineadm":                      0o644,
			"share/fish/vendor_completions.d/machineadm.fish":                   0o644,
			"share/zsh/site-functions/_machineadm":                              0o644,
		} {
			info, err := os.Stat(filepath.Join(at, file))
			if assert.NoError(t, err) {
				assert.Equal(t, mode, info.Mode(), file)
				assert.NotZero(t, info.Size(), file)
			}
		}
		for _, other := range []string{"machineadm-conformance", "machineadm-timesync-plugin-w32time"} {
			assert.NoFileExists(t, filepath.Join(at, "libexec/machineadm", other))
		}
		listed := run(filepath.Join(at, "bin/machineadm"), "plugins", "list", "--plugin-dir", filepath.Join(at, "libexec/machineadm"))
		assert.Contains(t, listed, at+"/libexec/machineadm/machineadm-sysctl-plugin-procfs")
		assert.Contains(t, run(filepath.Join(at, "bin/machineadm"), "install", "--help"), "(default: "+tools.Location+")")
		other := filepath.Join(at, "libexec/machineadm/machineadm-motd-plugin-file")
		require.NoError(t, os.WriteFile(other, nil, 0o600))
		run(append([]string{"make", "uninstall", "DESTDIR=" + dest}, arguments...)...)
		var left []string
		require.NoError(t, filepath.WalkDir(at, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				left = append(left, path)
			}
			return err
		}))
		assert.Equal(t, []string{other}, left)
		assert.NoDirExists(t, filepath.Join(at, "share/machineadm"))
	}
	c := exec.CommandContext(t.Context(), needs.Tool(t, "make"), "install", "BIN=/nonexistent", "DESTDIR="+dest)
	c.Dir = root
	out, err := c.CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(out), "run make build man")
}
