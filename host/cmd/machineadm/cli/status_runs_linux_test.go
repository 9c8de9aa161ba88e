package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/state"
)

// TestStatusOfEarlierRuns: --list has a line for each run, the newest first, and --run shows one of them.
func TestStatusOfEarlierRuns(t *testing.T) {
	b := newBench(t)
	b.noop("{}")
	got := b.run("status", "--list")
	assert.Equal(t, report.ExitFailed, got.code)
	assert.Contains(t, got.errOut, "there is no report in "+b.runs)
	b.apply(noopDoc("a", "touch: [a]"))
	first := b.report().RunID
	b.apply(noopDoc("b", "touch: [b], apply: fail"))
	second := b.report().RunID
	got = b.run("status", "--list", "--utc")
	require.Equal(t, report.ExitOK, got.code, "%s", got)
	lines := strings.Split(got.out, "\n")
	require.Len(t, lines, 4)
	assert.Regexp(t, `^RUN +STARTED +TOOK +EXIT +RESULT$`, lines[0])
	assert.Regexp(t, "^"+second+` +[0-9-]+ [0-9:]+ UTC +\S+ +4 +Failed at Noop/b while applying: .*running again is safe$`, lines[1])
	assert.Regexp(t, "^"+first+` +[0-9-]+ [0-9:]+ UTC +\S+ +0 +Succeeded: 1 document: 1 changed`, lines[2])
	var all []report.Report
	require.NoError(t, json.Unmarshal([]byte(b.run("status", "--list", "-o", "json").out), &all))
	assert.Equal(t, []string{second, first}, []string{all[0].RunID, all[1].RunID})
	for _, id := range []string{first, first[:9]} {
		got = b.run("status", "--run", id)
		assert.True(t, strings.HasPrefix(got.out, "Succeeded"), "%s", got)
		assert.Contains(t, got.out, "report: "+filepath.Join(b.state, "reports"))
	}
	assert.True(t, strings.HasPrefix(b.run("status", "--run", second).out, "Failed"))
	got = b.run("status", "--run", "zz")
	assert.Equal(t, report.ExitFailed, got.code)
	assert.Contains(t, got.errOut, "machineadm status --list")
}

// TestStatusDetails: what other programs have written is shown by its document, without what a terminal executes.
func TestStatusDetails(t *testing.T) {
	b := newBench(t)
	b.noop("{}")
	b.apply(noopDoc("a", "touch: [a]"))
	assert.Contains(t, b.run("status", "--details").out, "details: none")
	r := report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, RunID: "1", Outcome: report.RunFailed, ExitCode: 1,
		Errors: []report.Error{{Code: "Internal", Message: "it fails", Document: "Noop/a", Details: "document-1"}},
	}
	require.NoError(t, (&state.Reports{RunDir: b.runs}).Write(r, map[string]string{"document-1": "one\x1b[31m\n\ntwo\n"}))
	got := b.run("status", "--details")
	require.Equal(t, report.ExitOK, got.code, "%s", got)
	assert.Contains(t, got.out, "details of document-1 (Noop/a):\n  one\\x1b[31m\n\n  two\nreport: ")
	assert.NotContains(t, b.run("status").out, "two\n")
}

// TestStatusTimeline: the picture has the runs before the reboots, and a file that needs nothing else.
func TestStatusTimeline(t *testing.T) {
	b := newBench(t)
	b.noop("{}")
	b.apply(noopDoc("a", "touch: [a]"))
	got := b.run("status", "--timeline")
	require.Equal(t, report.ExitOK, got.code, "%s", got)
	assert.Regexp(t, `(?s)^Succeeded: 1 document: 1 changed.*\n  Noop/a \(test\) .*changed.*\n\n`, got.out)
	store, err := state.Open(b.state, "")
	require.NoError(t, err)
	start := time.Now().Add(-time.Hour).UTC()
	for i, boot := range []string{"one", "two"} {
		at := start.Add(time.Duration(i) * time.Minute)
		r := report.Report{
			APIVersion: report.APIVersion, Kind: report.Kind, RunID: boot, StreamDigest: "g", BootID: boot, UptimeMs: 9000, StartedAt: at,
			FinishedAt: at.Add(2 * time.Second), Outcome: report.RunRebootRequired, ExitCode: report.ExitReboot,
			Stages:    []report.Stage{{Name: report.StageApply, DurationMs: 2000}},
			Documents: []report.Document{{ID: "1", Kind: "Noop", Name: boot, Outcome: report.Changed, StartedAt: at, DurationMs: 2000}},
		}
		require.NoError(t, (&state.Reports{RunDir: b.runs, Store: store}).Write(r, nil))
	}
	got = b.run("status", "--timeline=text")
	assert.Regexp(t, `(?s)b+=+r+b+=+ .*  Noop/one .*  Noop/two `, got.out)
	got = b.run("status", "--timeline=svg", "--run", "two")
	assert.True(t, strings.HasPrefix(got.out, "<svg "), "%s", got)
	assert.Contains(t, got.out, ">Noop/one</text>")
	assert.Equal(t, 1, strings.Count(got.out, "http"), "the name space")
	for _, args := range [][]string{
		{"--timeline=png"},
		{"--timeline", "-o", "json"},
		{"--list", "--timeline"},
		{"--list", "--run", "a"},
		{"--details", "-o", "json"},
		{"--timeline", "--details"},
	} {
		assert.Equal(t, report.ExitUsage, b.run(append([]string{"status"}, args...)...).code, args)
	}
}

// TestReportTimeline: one picture has a row for each machine, and names the file that is no report.
func TestReportTimeline(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var files []string
	for i, name := range []string{"n1", "n2"} {
		at := time.Unix(int64(1000+10*i), 0)
		r := report.Report{
			APIVersion: report.APIVersion, Kind: report.Kind, RunID: name, StartedAt: at, FinishedAt: at.Add(20 * time.Second),
			Outcome: report.RunSucceeded, Host: report.Host{Hostname: name}, Stages: []report.Stage{{Name: report.StageApply, DurationMs: 20000}},
		}
		data, err := json.Marshal(r)
		require.NoError(t, err)
		files = append(files, filepath.Join(dir, name+".json"))
		require.NoError(t, os.WriteFile(files[i], data, 0o600))
	}
	got := execute(t, nil, append([]string{"report", "timeline", "--utc"}, files...)...)
	require.Equal(t, report.ExitOK, got.code, "%s", got)
	assert.Regexp(t, `^2 runs of 2 machines\nfrom 1970-01-01 00:16:40 UTC, 30s\n\n.*\nn1 =+\n  Succeeded: 0 documents.*\nn2 +=+\n`, got.out)
	got = execute(t, nil, append([]string{"report", "timeline", "--format", "svg"}, files...)...)
	assert.True(t, strings.HasPrefix(got.out, "<svg "), "%s", got)
	got = execute(t, nil, "report", "timeline", filepath.Join(dir, "none"))
	assert.Equal(t, report.ExitFailed, got.code)
	assert.Contains(t, got.errOut, filepath.Join(dir, "none"))
	assert.Equal(t, report.ExitUsage, execute(t, nil, "report", "timeline").code)
}
