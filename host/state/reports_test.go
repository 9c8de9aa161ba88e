package state

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

// full is a report in which every field is set.
func full() report.Report {
	started := time.Date(2026, 3, 1, 3, 4, 5, 678000000, time.UTC)
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind,
		RunID: "0011223344556677", StreamDigest: "00112233445566778899aabbccddeeff", BootID: "c0ffee00-0000-4000-8000-000000000001",
		StartedAt: started, FinishedAt: started.Add(1500 * time.Millisecond),
		Outcome: report.RunFailed, ExitCode: report.ExitFailed, Phase: "preparation", Root: "/mnt/image", Resume: report.ResumeByHand,
		Host: report.Host{
			Hostname: "node-1", Distribution: "debian", OSVersion: "12", Arch: "amd64", Kernel: "6.1.0-37-amd64", Machineadm: "v0.1.0",
		},
		Errors: []report.Error{{
			Code: "InvalidConfig", Message: "must be a number", Document: "Sysctl/base", Field: `spec.parameters["vm.swappiness"]`,
			File: "node.yaml", Line: 7, Column: 12, Hint: "write 10", Details: "document-0", Facts: map[string]string{"exitCode": "1"},
		}, {
			Code: "InvalidConfig", Message: "must be a number", Document: "Sysctl/base", Field: `spec.parameters["vm.swappiness"]`,
			File: "node.yaml", Line: 7, Column: 12, Hint: "write 10", Details: "document-0", Facts: map[string]string{"exitCode": "1"},
		}},
		UptimeMs: 9000, Stages: []report.Stage{{Name: report.StagePlan, DurationMs: 5}},
		Reboots: []report.Reboot{{Document: "Sysctl/base", When: "AfterRun"}},
		Trimmed: true,
		Documents: []report.Document{{
			Index: 1, ID: "2", Omitted: 3, APIVersion: "machineadm.cluster.x-k8s.io/v1alpha1", Kind: "Sysctl", Name: "base", Provider: "procfs",
			Plugin: &report.Plugin{
				Path: "/usr/libexec/machineadm/machineadm-sysctl-plugin-procfs", Version: "v0.1.0", SHA256: strings.Repeat("ab", 32),
			},
			Outcome: report.Failed, Reason: report.ReasonLive,
			Changes:    []report.Change{{ID: "file", Summary: "write a > b & c", Outcome: report.Changed, DurationMs: 12, StartedAt: started}},
			StartedAt:  started,
			PlanMs:     5,
			Waits:      []report.Wait{{Reason: "no route to host", StartedAt: started, DurationMs: 7}},
			Warnings:   []string{"the file is also written by hand"},
			Errors:     []int{1},
			DurationMs: 34,
		}},
	}
}

// TestShape compares the JSON that the controller and other programs read.
func TestShape(t *testing.T) {
	t.Parallel()
	schema, err := jsonschema.NewCompiler().Compile("../../contract/report/report.schema.json")
	require.NoError(t, err)
	wantFull(t, "report", reflect.ValueOf(full()))
	dir := filepath.Join(t.TempDir(), "run")
	details := map[string]string{"document-1": "sysctl: \xff permission denied\n\tat 2>&1\n"}
	if err := (&Reports{RunDir: dir}).Write(full(), details); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{ReportFile, DetailsFile} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
		}
		if name == ReportFile {
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(got))
			require.NoError(t, err)
			assert.NoError(t, schema.Validate(value))
		}
	}
}

// wantFull fails for a field that the golden file would not show.
func wantFull(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer:
		wantFull(t, path, v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			wantFull(t, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			break
		}
		for i := range v.NumField() {
			wantFull(t, path+"."+v.Type().Field(i).Name, v.Field(i))
		}
		return
	default:
	}
	if v.IsZero() {
		t.Errorf("%s is not set", path)
	}
}

func TestEmptyListsAreLists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := (&Reports{RunDir: dir}).Write(report.Report{APIVersion: report.APIVersion, Kind: report.Kind}, nil); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, ReportFile))
	if err != nil || !strings.Contains(string(data), `"documents": []`) || strings.Contains(string(data), "null") {
		t.Errorf("an empty list is missing (%v):\n%s", err, data)
	}
	if exists(t, filepath.Join(dir, DetailsFile)) {
		t.Error("an empty details file exists")
	}
}

// TestDetailsAreWrittenFirst: the details of a report exist when the report does.
func TestDetailsAreWrittenFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ReportFile, "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	details := map[string]string{"document-0": "words"}
	wantState(t, (&Reports{RunDir: dir}).Write(full(), details), ReportFile)
	if !exists(t, filepath.Join(dir, DetailsFile)) {
		t.Error("the report comes first")
	}
	remove(t, filepath.Join(dir, DetailsFile))
	remove(t, filepath.Join(dir, ReportFile, "in the way"))
	remove(t, filepath.Join(dir, ReportFile))
	if err := os.Mkdir(filepath.Join(dir, DetailsFile), 0o755); err != nil {
		t.Fatal(err)
	}
	wantState(t, (&Reports{RunDir: dir}).Write(full(), details), DetailsFile)
	if exists(t, filepath.Join(dir, ReportFile)) {
		t.Error("a report was written whose details are missing")
	}
}

func kept(t *testing.T, store *Store) []string {
	t.Helper()
	names, err := reportNames(filepath.Join(store.dir, reportsDir))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestLastReportsAreKept(t *testing.T) {
	t.Parallel()
	store := opened(t, filepath.Join(t.TempDir(), "state"), "machine-1")
	runs := Reports{RunDir: t.TempDir(), Store: store}
	write(t, filepath.Join(store.dir, reportsDir, "00000001-mine.txt"), "", 0o600)
	write(t, filepath.Join(store.dir, reportsDir, "mine.json"), "", 0o600)
	for i := range 23 {
		r := full()
		r.RunID = fmt.Sprintf("run%02d", i)
		r.StartedAt = r.StartedAt.AddDate(-i, 0, 0) // the clock is set back before each run
		for range 3 {                               // a report is written several times during its run
			if err := runs.Write(r, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	names := kept(t, store)
	if len(names) != keptReports {
		t.Fatalf("%d are kept: %v", len(names), names)
	}
	if first := names[0]; !strings.HasSuffix(first, "-run03.json") {
		t.Errorf("the oldest is %s", first)
	}
	if last := names[keptReports-1]; last != "00000023-20040301T030405Z-run22.json" {
		t.Errorf("the newest is %s", last)
	}
	remove(t, filepath.Join(runs.RunDir, ReportFile)) // a reboot
	last, path, err := Last(runs.RunDir, store.dir)
	if err != nil || last.RunID != "run22" || filepath.Base(path) != names[keptReports-1] {
		t.Errorf("the last is %s at %s (%v)", last.RunID, path, err)
	}
	for _, name := range []string{"00000001-mine.txt", "mine.json"} {
		if !exists(t, filepath.Join(store.dir, reportsDir, name)) {
			t.Errorf("%s is not a report of ours and was removed", name)
		}
	}
}

func TestLast(t *testing.T) {
	t.Parallel()
	runDir, stateDir := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "state")
	if _, path, err := Last(runDir, stateDir); !errors.Is(err, ErrNoReport) || path != "" {
		t.Errorf("%s (%v), want none", path, err)
	}
	store := opened(t, stateDir, "machine-1")
	if _, _, err := Last(runDir, stateDir); !errors.Is(err, ErrNoReport) {
		t.Errorf("%v, want none", err)
	}
	older, newer := full(), full()
	older.RunID, newer.RunID = "older", "newer"
	for _, r := range []report.Report{older, newer} {
		if err := (&Reports{RunDir: runDir, Store: store}).Write(r, nil); err != nil {
			t.Fatal(err)
		}
	}
	own := filepath.Join(runDir, ReportFile)
	if last, path, err := Last(runDir, stateDir); err != nil || path != own || !reflect.DeepEqual(last, newer) {
		t.Errorf("%+v at %s (%v)", last, path, err)
	}
	remove(t, own)
	if last, path, err := Last(runDir, stateDir); err != nil || filepath.Dir(path) != filepath.Join(stateDir, reportsDir) || last.RunID != "newer" {
		t.Errorf("%s at %s (%v)", last.RunID, path, err)
	}
}

func TestDamagedReport(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"empty": "", "half": `{"kind": "RunRep`, "another kind": `{"apiVersion": "machineadm.cluster.x-k8s.io/v1alpha1", "kind": "Sysctl"}`, "another type": `{"runID": 7}`,
		"another version": `{"apiVersion": "machineadm.cluster.x-k8s.io/v9", "kind": "RunReport"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runDir, stateDir := t.TempDir(), filepath.Join(t.TempDir(), "state")
			if err := (&Reports{RunDir: runDir, Store: opened(t, stateDir, "machine-1")}).Write(full(), nil); err != nil {
				t.Fatal(err)
			}
			names := kept(t, &Store{dir: stateDir})
			path := filepath.Join(runDir, ReportFile)
			write(t, path, content, 0o644)
			if _, at, err := Last(runDir, stateDir); err == nil || at != path || !strings.Contains(err.Error(), path) {
				t.Errorf("%v at %s: want an error that names %s, never an older report", err, at, path)
			}
			remove(t, path)
			path = filepath.Join(stateDir, reportsDir, names[0])
			write(t, path, content, 0o600)
			if _, at, err := Last(runDir, stateDir); err == nil || at != path || !strings.Contains(err.Error(), path) {
				t.Errorf("%v at %s: want an error that names %s", err, at, path)
			}
		})
	}
}

func TestRunDirIsAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run")
	write(t, path, "", 0o600)
	wantState(t, MakeRunDir(path), path)
	wantState(t, MakeRunDir(filepath.Join(path, "deeper")), path)
	wantState(t, (&Reports{RunDir: path}).Write(full(), nil), path)
	if runtime.GOOS == "windows" {
		return
	}
	dangling := filepath.Join(t.TempDir(), "dangling")
	if err := os.Symlink(path+"-gone", dangling); err != nil {
		t.Fatal(err)
	}
	wantState(t, MakeRunDir(dangling), "no such file")
}

// TestLeftoverReportIsRemoved: no other write has the name of a killed run's temporary report.
func TestLeftoverReportIsRemoved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	store := opened(t, dir, "machine-1")
	require.NoError(t, (&Reports{RunDir: t.TempDir(), Store: store}).Write(full(), nil))
	left := filepath.Join(dir, reportsDir, ".00000002-20261121T000000.000Z-dead.json.machineadm-tmp")
	write(t, left, `{"kind": "Run`, 0o600)
	w := NewWrites("", dir)
	w.records = w.records[:1] // not the image record of the machine that runs the tests
	require.NoError(t, w.CleanUp())
	assert.NoFileExists(t, left)
	assert.Len(t, kept(t, store), 1)
}

// TestReportsAreRemovedDuringARun: a run creates the directory of reports again.
func TestReportsAreRemovedDuringARun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := opened(t, filepath.Join(dir, "state"), "machine-1")
	reports := Reports{RunDir: filepath.Join(dir, "run"), Store: store}
	for range 2 {
		if err := reports.Write(full(), nil); err != nil {
			t.Fatal(err)
		}
		if names := kept(t, store); len(names) != 1 {
			t.Fatalf("%d are kept: %v", len(names), names)
		}
		if err := os.RemoveAll(filepath.Join(store.dir, reportsDir)); err != nil {
			t.Fatal(err)
		}
	}
}
