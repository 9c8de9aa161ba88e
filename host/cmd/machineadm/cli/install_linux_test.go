package cli

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/session"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/installer/install"
)

const publicKey = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"

// TestInstallRefusesDuringARun: the directory that a run takes its plugins from does not change while it is active.
func TestInstallRefusesDuringARun(t *testing.T) {
	b := newBench(t)
	require.NoError(t, os.MkdirAll(b.runs, 0o700))
	lock, err := state.Acquire(filepath.Join(b.runs, "lock"))
	require.NoError(t, err)
	args := []string{
		"install", "--run-dir", b.runs, "--state-dir", b.state, "--manifest", filepath.Join(b.dir, "absent"),
		"--key", publicKey,
	}
	link := filepath.Join(b.dir, "opt")
	require.NoError(t, os.Symlink(filepath.Dir(install.DefaultDirectory), link))
	for _, to := range []string{"", install.DefaultDirectory + "/", "/opt/./machineadm", "//opt/machineadm", link + "/machineadm"} {
		same := slices.Clone(args)
		if to != "" {
			same = append(same, "--to", to)
		}
		got := execute(t, nil, same...)
		assert.Equal(t, report.ExitLocked, got.code, "%s: %s", to, got)
	}
	got := execute(t, nil, append(args, "--to", b.dir)...)
	assert.Equal(t, report.ExitPrecondition, got.code, "%s", got)
	assert.Contains(t, got.errOut, "absent")
	require.NoError(t, lock.Release())
	got = execute(t, nil, args...)
	assert.Equal(t, report.ExitPrecondition, got.code, "%s", got)
}

// TestInstallKeepsRunsOutDuringTheSwitchAlone: a run can start while install downloads or tries again.
func TestInstallKeepsRunsOutDuringTheSwitchAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	require.NoError(t, os.MkdirAll(b.runs, 0o700))
	var duringDownload error
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock, err := state.Acquire(filepath.Join(b.runs, "lock"))
		if duringDownload = err; err == nil {
			duringDownload = lock.Release()
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	got := execute(t, nil, "install", "--run-dir", b.runs, "--state-dir", b.state, "--manifest", server.URL, "--key", publicKey)
	assert.Equal(t, report.ExitPrecondition, got.code, "%s", got)
	assert.Contains(t, got.errOut, "404")
	require.NoError(t, duringDownload)

	o := session.Options{RunDir: b.runs, StateDir: b.state, Log: slog.New(slog.DiscardHandler)}
	switched := 0
	require.NoError(t, withoutRun(o, func() error {
		switched++
		_, err := state.Acquire(filepath.Join(b.runs, "lock"))
		assert.ErrorIs(t, err, state.ErrLocked)
		return nil
	}))
	lock, err := state.Acquire(filepath.Join(b.runs, "lock"))
	require.NoError(t, err)
	failed := new(install.Error)
	require.ErrorAs(t, withoutRun(o, func() error { switched++; return nil }), &failed)
	assert.Equal(t, report.ExitLocked, failed.Code)
	assert.NotEmpty(t, failed.Remedy)
	assert.Equal(t, 1, switched)
	require.NoError(t, lock.Release())
}
