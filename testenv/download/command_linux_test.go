package download

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/install"
	machine "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

// TestCommand runs the built program.
func TestCommand(t *testing.T) {
	t.Parallel()
	machine.Root(t) // the lock of runs is in /run
	dir := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), dir, map[string]string{"machineadm": "host/cmd/machineadm"}))
	run := func(code int, arguments ...string) (string, string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), filepath.Join(dir, "machineadm"), arguments...)
		var out, err bytes.Buffer
		c.Stdout, c.Stderr = &out, &err
		_ = c.Run() // the exit code is compared
		require.Equal(t, code, c.ProcessState.ExitCode(), err.String())
		return out.String(), err.String()
	}
	b := newBed(t).write(Release{})
	key := b.key.Public().String()
	base := []string{"install", "--to", b.to, "--manifest", b.from, "--key", key}
	out, _ := run(report.ExitOK, base...)
	assert.Equal(t, "machineadm v1.0.0 is installed in "+b.to+" with 2 plugins\n", out)
	out, _ = run(report.ExitOK, base...)
	assert.Equal(t, "machineadm v1.0.0 is already installed in "+b.to+" with 2 plugins\n", out)
	out, _ = run(report.ExitOK, append(base, "--with", "sysctl-plugin-procfs,"+timesync, "--version", "v1.0.0", "-o", "json")...)
	var result install.Result
	require.NoError(t, json.Unmarshal([]byte(out), &result))
	assert.Equal(t, install.Result{Version: "v1.0.0", Directory: b.to, Plugins: []string{sysctl, timesync}}, result)

	closed := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `umask 077 && exec "$0" "$@"`, filepath.Join(dir, "machineadm")},
		"install", "--to", b.to+"-new/b", "--manifest", b.from, "--key", key)...)
	message, err := closed.CombinedOutput()
	require.NoError(t, err, string(message))
	assert.Equal(t, tree(t, b.to), tree(t, b.to+"-new/b"), "the umask changes no mode")

	copied := b.to + "-copy"
	out, _ = run(report.ExitOK, "mirror", "--from", b.from, "--to", copied, "--key", key)
	assert.Equal(t, copied+" has the release v1.0.0: 2 files, 2 of them new\n", out)
	out, _ = run(report.ExitOK, "mirror", "--from", b.from, "--to", copied, "--key", key, "-o", "json")
	assert.JSONEq(t, `{"version": "v1.0.0", "directory": "`+copied+`", "files": 2, "copied": 0}`, out)

	for text, arguments := range map[string][]string{
		"--manifest is missing: this build of machineadm has no default location": {"install", "--to", b.to},
		"--from is missing":                                            {"mirror", "--to", b.to},
		"--to is missing":                                              {"mirror", "--from", b.from},
		"--manifest has an empty value":                                {"install", "--manifest", ""},
		"--key has an empty value":                                     {"install", "--manifest", b.from, "--key", ""},
		"--with has an empty value":                                    {"install", "--manifest", b.from, "--key", key, "--with", ""},
		"--to has an empty value":                                      {"install", "--manifest", b.from, "--to", ""},
		"hint: give the publisher's minisign public key":               {"install", "--manifest", b.from, "--to", b.to},
		"location 2 of the release, at s3://bucket, is neither a path": {"install", "--manifest", b.from, "--manifest", "s3://me:s3cret@bucket/s3cret?s3cret", "--key", key},
		"--output takes text or json":                                  append(base, "-o", "yaml"),
	} {
		_, problem := run(report.ExitUsage, arguments...)
		assert.Contains(t, problem, text)
	}
	_, problem := run(report.ExitUntrusted, "install", "--to", b.to, "--manifest", b.from, "--key", NewKey(t).Public().String())
	assert.Contains(t, problem, "error: "+b.from+"/manifest.json.minisig: is of the key ")
	assert.Contains(t, problem, "hint: check the location")
	_, problem = run(report.ExitDeadline, append(base, "--manifest", "http://127.0.0.1:1", "--timeout", "300ms", "--version", "v2.0.0")...)
	assert.Contains(t, problem, "the time limit is reached: the location has the release v1.0.0, and not v2.0.0; http://127.0.0.1:1/manifest.json: ")
	_, problem = run(report.ExitUsage, append(base, "--with", "none")...)
	assert.Contains(t, problem, "it has: "+sysctl+", "+timesync)
}
