package machine

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/host/state"
)

func TestRemoveStale(t *testing.T) {
	t.Parallel()
	parent, outside := t.TempDir(), t.TempDir()
	for _, name := range []string{"machineadm-run-1/plugins/a", "machineadm-2", "run-3"} {
		require.NoError(t, os.MkdirAll(filepath.Join(parent, name), 0o700))
	}
	require.NoError(t, os.Symlink(outside, filepath.Join(parent, "machineadm-run-link")))
	require.NoError(t, os.WriteFile(filepath.Join(parent, "machineadm-run-file"), nil, 0o600))
	held, err := os.MkdirTemp(parent, runPrefix) //nolint:usetesting // one that is locked
	require.NoError(t, err)
	lock, err := state.Acquire(ownerLock(held))
	require.NoError(t, err)
	require.NoError(t, removeStale(parent))
	entries := func() (out []string) {
		found, err := os.ReadDir(parent)
		require.NoError(t, err)
		for _, e := range found {
			out = append(out, e.Name())
		}
		return out
	}
	want := []string{"machineadm-2", "machineadm-run-file", "machineadm-run-link", "run-3"}
	assert.ElementsMatch(t, append(want, filepath.Base(held)), entries())
	removeOwned(held, lock)
	assert.ElementsMatch(t, want, entries())
	assert.DirExists(t, outside)
	assert.NoError(t, removeStale(filepath.Join(parent, "missing")))
}

// TestTemporaryAmongRunsThatCleanUp: a directory that another run takes for a leftover, before it is locked, is made again.
func TestTemporaryAmongRunsThatCleanUp(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("TMPDIR", parent)
	var runs, others sync.WaitGroup
	var done atomic.Bool
	for range 2 {
		others.Go(func() {
			for !done.Load() {
				assert.NoError(t, removeStale(parent))
			}
		})
	}
	for range 4 {
		runs.Go(func() {
			for range 100 {
				dir, remove, err := Temporary(slog.New(slog.DiscardHandler), MaxPath)
				if assert.NoError(t, err) {
					assert.DirExists(t, dir)
					remove()
				}
			}
		})
	}
	runs.Wait()
	done.Store(true)
	others.Wait()
	left, err := os.ReadDir(parent)
	require.NoError(t, err)
	assert.Empty(t, left)
}
