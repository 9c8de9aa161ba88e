package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/state"
)

// quiet are options of a session that shows nothing.
func quiet() Options {
	return Options{Log: slog.New(slog.DiscardHandler), Note: func(string) {}, Fail: func(*report.Error) {}}
}

// TestHookDoesNotReboot: the last event and the report say what the exit code says.
func TestHookDoesNotReboot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &Session{o: quiet(), record: record{reports: state.Reports{RunDir: dir}}}
	s.o.Fail = func(e *report.Error) { t.Errorf("shown beside the result: %s", e) }
	result := report.Report{APIVersion: report.APIVersion, Kind: report.Kind, Outcome: report.RunRebootRequired, ExitCode: report.ExitReboot}
	details := map[string]string{}
	var out bytes.Buffer
	observe := reporting.JSON{Out: &out}.Observe
	s.rebooted(t.Context(), nil, &result, details, observe)
	assert.Empty(t, out.String())
	failed := &launch.HookError{Call: "init-hook reboot", Cause: errors.New("exit status 7"), Output: "c4n4ry"}
	s.rebooted(t.Context(), failed, &result, details, observe)
	assert.Equal(t, report.ExitState, result.ExitCode)
	assert.NotContains(t, out.String(), "c4n4ry")
	var last struct {
		Type   string
		Report report.Report
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &last))
	assert.Equal(t, "run-finished", last.Type)
	kept, err := os.ReadFile(filepath.Join(dir, state.ReportFile))
	require.NoError(t, err)
	var written report.Report
	require.NoError(t, json.Unmarshal(kept, &written))
	for _, r := range []report.Report{last.Report, written} {
		assert.Equal(t, report.ExitState, r.ExitCode)
		assert.Equal(t, report.RunFailed, r.Outcome)
		assert.Equal(t, "the reboot failed: init-hook reboot: exit status 7", r.Errors[0].Message)
	}
	var text bytes.Buffer
	s.rebooted(t.Context(), failed, &result, details, reporting.Text{Out: io.Discard, Err: &text}.Observe)
	assert.Contains(t, text.String(), "the reboot failed: init-hook reboot: exit status 7")
}
