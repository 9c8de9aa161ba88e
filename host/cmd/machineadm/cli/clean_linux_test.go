package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/machine"
	"github.com/machineadm/machineadm/host/session"
	"github.com/machineadm/machineadm/host/state"
)

// clean cleans the image. The live machine is cleaned in testenv/imagebuilder.
func (b *bench) clean(args ...string) result {
	b.t.Helper()
	return execute(b.t, nil, append([]string{"clean", "--root", b.root}, args...)...)
}

func TestCleanAfterBake(t *testing.T) {
	b := newBench(t)
	b.noop("")
	require.Equal(t, report.ExitOK, b.apply(noopDoc("a", "touch: [/etc/a]")).code)
	b.state, b.runs = filepath.Join(b.root, machine.StateDir()), filepath.Join(b.root, machine.RunDir())
	keep(b, "kind: X\n") // as machineadm in the image does
	write(t, filepath.Join(b.runs, state.ReportFile), "{}")

	got := b.clean()
	assert.Equal(t, report.ExitReboot, got.code, "%s", got)
	assert.Contains(t, got.errOut, "/run/gone.yaml waits for its reboot")
	assert.Contains(t, got.errOut, "--discard-run")
	assert.FileExists(t, filepath.Join(b.state, state.PendingFile))

	got = b.clean("--discard-run")
	require.Equal(t, report.ExitOK, got.code, "%s", got)
	for _, path := range []string{filepath.Join(b.state, state.PendingFile), filepath.Join(b.state, "machine-id"), filepath.Join(b.runs, state.ReportFile)} {
		assert.Contains(t, got.out, "removed "+path+"\n")
		assert.NoFileExists(t, path)
	}
	assert.True(t, strings.HasSuffix(got.out, "cleaned; providers kept for the first boot: 1\n"), got.out)
	data, err := os.ReadFile(filepath.Join(b.root, state.ImageChoices))
	require.NoError(t, err)
	assert.JSONEq(t, `{"Noop/a":"test"}`, string(data))

	for _, name := range []string{"clean", "seal"} { // the former name
		assert.Equal(t, result{out: "nothing to remove\n"}, execute(t, nil, name, "--root", b.root), name)
	}
	var read session.Cleaned
	require.NoError(t, json.Unmarshal([]byte(b.clean("-o", "json").out), &read))
	assert.Equal(t, session.Cleaned{Removed: []string{}, Choices: map[string]string{"Noop/a": "test"}}, read)
}

// TestCleanRemovesLeftovers: temporary files of a killed bake can contain secrets.
func TestCleanRemovesLeftovers(t *testing.T) {
	b := newBench(t)
	write(t, filepath.Join(b.root, "etc/secret"), "old")
	write(t, filepath.Join(b.root, state.ImageWrites), `{"version":1,"paths":["/etc/secret"]}`)
	left := filepath.Join(b.root, "etc/.secret.machineadm-tmp")
	write(t, left, "c4n4ry")
	require.Equal(t, report.ExitOK, b.clean().code)
	assert.NoFileExists(t, left)
	assert.NoFileExists(t, filepath.Join(b.root, state.ImageWrites))
}

func TestCleanRefusesARun(t *testing.T) {
	b := newBench(t)
	for name, path := range map[string]string{"a bake": b.root, "a run in the image": filepath.Join(b.root, machine.RunDir(), "lock")} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			lock, err := state.Acquire(path)
			require.NoError(t, err)
			got := b.clean("--discard-run")
			assert.NoError(t, lock.Release())
			assert.Equal(t, report.ExitLocked, got.code, "%s", got)
		})
	}
}

func TestCleanFlags(t *testing.T) {
	b := newBench(t)
	for _, args := range [][]string{{"--root", "/"}, {"--root", filepath.Join(b.dir, "absent")}, {"-o", "yaml"}, {"more"}} {
		got := execute(t, nil, append([]string{"clean"}, args...)...)
		assert.Equal(t, report.ExitUsage, got.code, "%v: %s", args, got)
	}
}
