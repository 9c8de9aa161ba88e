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
