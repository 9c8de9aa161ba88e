package state

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

// TestHistory: the runs of a stream are those that a reboot, a kill or an interruption has ended, up to one that ended by itself or
// is of another stream.
func TestHistory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, err := Open(dir, "")
	require.NoError(t, err)
	_, err = os.Stat(filepath.Join(dir, reportsDir))
	require.ErrorIs(t, err, os.ErrNotExist)
	none, err := KeptReports(dir)
	require.NoError(t, err)
	assert.Empty(t, none)
	for i, c := range []struct {
		streamDigest string
		outcome      report.Outcome
	}{
		{"a", report.RunRebootRequired},
		{"b", report.RunRebootRequired},
		{"a", report.RunSucceeded},
		{"a", report.RunRebootRequired},
		{"a", report.RunRunning},
		{"a", report.RunInterrupted},
		{"a", report.RunFailed},
		{"", report.RunRebootRequired},
		{"", report.RunFailed},
	} {
		r := Reports{RunDir: t.TempDir(), Store: store}
		require.NoError(t, r.Write(report.Report{
			APIVersion: report.APIVersion, Kind: report.Kind, RunID: fmt.Sprint("run", i), StreamDigest: c.streamDigest, Outcome: c.outcome,
			StartedAt: time.Unix(0, 0),
		}, nil))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, reportsDir, "00000099-x-y.json"), []byte("{}"), 0o600))
	kept, err := KeptReports(dir)
	require.NoError(t, err)
	require.Len(t, kept, 9)
	assert.Equal(t, "run8", kept[0].RunID)
	history := func(i int) (ids []string) {
		for _, r := range History(kept, kept[len(kept)-1-i].Report) {
			ids = append(ids, r.RunID)
		}
		return ids
	}
	assert.Equal(t, []string{"run3", "run4", "run5", "run6"}, history(6))
	assert.Equal(t, []string{"run3"}, history(3), "the run before has succeeded")
	assert.Equal(t, []string{"run1"}, history(1), "the run before is of another stream")
	assert.Equal(t, []string{"run8"}, history(8), "a run without a generation has no history")
	assert.Len(t, History(kept, report.Report{RunID: "of an image", StreamDigest: "a"}), 1)
}
