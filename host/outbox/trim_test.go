package outbox

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

var update = flag.Bool("update", false, "write the golden files")

// sent is the report of a run with a document that changed, one that warned, and one that failed.
func sent() report.Report {
	change := func(id string) report.Change {
		return report.Change{ID: id, Summary: "write <" + id + ">", Outcome: report.Changed, DurationMs: 1}
	}
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, RunID: "00112233", StreamDigest: "aabb", BootID: "boot-1",
		StartedAt: time.Unix(1, 0).UTC(), FinishedAt: time.Unix(2, 0).UTC(), Outcome: report.RunFailed, ExitCode: 4, Phase: "all",
		Host:   report.Host{Distribution: "debian", Arch: "amd64", Machineadm: "v1"},
		Errors: []report.Error{{Code: "Precondition", Message: "it fails\u202e", Document: "Noop/c", Hint: "repair it"}},
		Documents: []report.Document{
			{ID: "1", Kind: "Noop", Name: "a", Outcome: report.Changed, Changes: []report.Change{change("1"), change("2")}, Waits: []report.Wait{{Reason: "no route", DurationMs: 1}}},
			{Index: 1, ID: "2", Kind: "Noop", Name: "b", Outcome: report.Unchanged, Warnings: []string{"one", "two"}, Omitted: 1},
			{Index: 2, ID: "3", Kind: "Noop", Name: "c", Outcome: report.Failed, Changes: []report.Change{change("3")}, Errors: []int{0}, Warnings: []string{"three"}},
		},
	}
}

// TestTrim compares what remains of a report, the smaller the limit the less.
func TestTrim(t *testing.T) {
	t.Parallel()
	whole, err := Trim(sent(), report.MaxBytes)
	require.NoError(t, err)
	var all strings.Builder
	last := ""
	for size := len(whole); size >= 0; size-- {
		got, err := Trim(sent(), size)
		require.NoError(t, err)
		if string(got) == last {
			continue
		}
		last = string(got)
		fmt.Fprintf(&all, "# from %d bytes: %d\n%s", size, len(got), got)
	}
	path := filepath.Join("testdata", "trimmed.txt")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(all.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), all.String())
}

// TestTrimLarge: the largest stream fits, with so many errors as do, and the report of the caller is as before.
func TestTrimLarge(t *testing.T) {
	t.Parallel()
	r := sent()
	for i := range 10000 {
		d := r.Documents[0]
		d.Index = i + 3
		r.Documents = append(r.Documents, d)
	}
	before := len(r.Documents)
	text, err := Trim(r, report.MaxBytes)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(text), report.MaxBytes)
	assert.Len(t, r.Documents, before)
	assert.Len(t, r.Documents[0].Changes, 2)
	assert.False(t, r.Trimmed)
	var got report.Report
	require.NoError(t, json.Unmarshal(text, &got))
	assert.True(t, got.Trimmed)
	assert.Equal(t, r.Errors, got.Errors)

	for i := range 5000 { // each of a document of its own
		r.Errors = append(r.Errors, r.Errors[0])
		r.Documents = append(r.Documents, report.Document{Index: i + 20000, Kind: "Noop", Name: "d", Outcome: report.Failed, Errors: []int{i + 1}})
	}
	got = report.Report{}
	text, err = Trim(r, report.MaxBytes)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &got))
	assert.LessOrEqual(t, len(text), report.MaxBytes)
	assert.Greater(t, len(got.Errors), 500)
	assert.Equal(t, r.Errors[0], got.Errors[0], "it decides the exit code")
	assert.Len(t, r.Errors, 5001)
	for _, d := range got.Documents {
		assert.NotEmpty(t, d.Errors)
		for _, index := range d.Errors {
			assert.Less(t, index, len(got.Errors))
		}
	}
}

func TestTrimOfARefusedRun(t *testing.T) {
	t.Parallel()
	text, err := Trim(report.Report{}, report.MaxBytes)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"documents":[]`)
	assert.NotContains(t, string(text), "trimmed")
}
