package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/state"
)

// TestStatusHints: without a report that can be read, status says how to continue.
func TestStatusHints(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	status := func() string {
		var errOut bytes.Buffer
		exit := Execute(t.Context(), []string{"status", "--run-dir", dir, "--state-dir", dir}, streams{
			in: strings.NewReader(""), out: &bytes.Buffer{}, err: &errOut,
		})
		assert.Equal(t, report.ExitFailed, exit)
		return errOut.String()
	}
	assert.Contains(t, status(), "after a run with --run-dir or --state-dir, give the same flags")
	for _, damaged := range []string{"{", `{"kind": "X"}`, `{"kind": "RunReport", "apiVersion": "v0"}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, state.ReportFile), []byte(damaged), 0o600))
		got := status()
		assert.Contains(t, got, "is not a report of this release")
		assert.Contains(t, got, "hint: run the same command again, which is safe and writes a new report")
	}
}

// TestStatusShowsCauses: the first line has the cause that only the details of the run hold, on one line and bounded. Without
// them, in JSON and with the reports of another run it is as in the report.
func TestStatusShowsCauses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, RunID: "1", Outcome: report.RunFailed, ExitCode: report.ExitPrecondition,
		Errors: []report.Error{
			{Code: "Precondition", Message: "it fails.", Hint: "repair it", Details: "document-1"},
			{Code: "Precondition", Message: "another", Details: "document-2"},
		},
	}
	status := func(runID, detail string, flags ...string) string {
		require.NoError(t, (&state.Reports{RunDir: dir}).Write(run, map[string]string{"document-1": detail, "document-2": "raw\ncause: no"}))
		data, err := os.ReadFile(filepath.Join(dir, state.DetailsFile))
		require.NoError(t, err)
		data = bytes.Replace(data, []byte(`"runID": "1"`), []byte(`"runID": "`+runID+`"`), 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, state.DetailsFile), data, 0o600))
		var out bytes.Buffer
		args := append([]string{"status", "--run-dir", dir, "--state-dir", dir}, flags...)
		require.Zero(t, Execute(t.Context(), args, streams{in: strings.NewReader(""), out: &out, err: &out}))
		return out.String()
	}
	const cause = "cause: it ended: no such\x1b argument\n\nraw"
	assert.Contains(t, status("1", cause), `: it fails: it ended: no such\x1b argument (and 1 more error); remedy: repair it;`)
	assert.NotContains(t, status("1", cause), "another: no")
	assert.Contains(t, status("1", "cause: "+strings.Repeat("x", 1<<10)), ": "+strings.Repeat("x", 512)+" (and")
	assert.Contains(t, status("1", "raw"), ": it fails (and 1 more error); remedy")
	assert.Contains(t, status("2", cause), ": it fails (and 1 more error); remedy")
	assert.NotContains(t, status("1", cause, "--output", "json"), "argument")
}
