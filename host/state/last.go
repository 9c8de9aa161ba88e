package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/machineadm/machineadm/contract/report"
)

var (
	// ErrNoReport means that no run has left a report.
	ErrNoReport = errors.New("no run has left a report")
	// ErrNotReport means that the file of the report has another content, or that of another release.
	ErrNotReport = errors.New("it is not a report of this release")
	// ErrLost means that the last run left no report, and an earlier run did.
	ErrLost = errors.New("the last run has left no report")
)

// Last returns the report of the last run and its path: in the run directory or, after a reboot, the newest one in the state
// directory. With ErrLost, the path is that of an earlier report.
func Last(runDir, stateDir string) (report.Report, string, error) {
	path := filepath.Join(runDir, ReportFile)
	last, err := Read(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return last, path, err
	}
	kept, path, err := newest(stateDir)
	earlier := filepath.Join(runDir, earlierFile)
	if before, beforeErr := Read(earlier); beforeErr == nil && (err != nil || !kept.StartedAt.After(before.StartedAt)) {
		return report.Report{}, earlier, ErrLost
	}
	return kept, path, err
}

// newest reads the report with the highest number.
func newest(stateDir string) (report.Report, string, error) {
	dir := filepath.Join(stateDir, reportsDir)
	names, err := reportNames(dir)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return report.Report{}, dir, fmt.Errorf("search for reports: %w", err)
	case len(names) == 0:
		return report.Report{}, "", ErrNoReport
	}
	path := filepath.Join(dir, names[len(names)-1])
	last, err := Read(path)
	return last, path, err
}

// Kept is a report in the state directory.
type Kept struct {
	Path string
	report.Report
}

// KeptReports returns the reports in the state directory, newest first. It leaves out reports of another release.
func KeptReports(stateDir string) ([]Kept, error) {
	dir := filepath.Join(stateDir, reportsDir)
	names, err := reportNames(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("search for reports: %w", err)
	}
	var out []Kept
	for _, name := range slices.Backward(names) {
		path := filepath.Join(dir, name)
		switch r, err := Read(path); {
		case err == nil:
			out = append(out, Kept{path, r})
		case !errors.Is(err, ErrNotReport) && !errors.Is(err, fs.ErrNotExist): // a run has removed the oldest
			return nil, err
		}
	}
	return out, nil
}

// History returns the reports of the stream of a run on one machine, oldest first and the run last: those before it that a reboot or a
// kill has ended. kept are the kept reports, newest first.
func History(kept []Kept, run report.Report) []report.Report {
	out := []report.Report{run}
	at := slices.IndexFunc(kept, func(k Kept) bool { return k.RunID == run.RunID })
	for _, before := range kept[at+1:] {
		ended := before.Outcome != report.RunRebootRequired && before.Outcome != report.RunRunning && before.Outcome != report.RunInterrupted
		if at < 0 || ended || before.StreamDigest != run.StreamDigest || run.StreamDigest == "" {
			break
		}
		out = append(out, before.Report)
	}
	slices.Reverse(out)
	return out
}

// Read reads a report from a file.
func Read(path string) (r report.Report, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("read the report: %w", err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return report.Report{}, fmt.Errorf("read %s: %w: %w", path, ErrNotReport, err)
	}
	switch {
	case r.Kind != report.Kind:
		return report.Report{}, fmt.Errorf("read %s: %w: its kind is not %s", path, ErrNotReport, report.Kind)
	case r.APIVersion != report.APIVersion:
		return report.Report{}, fmt.Errorf("read %s: %w: its apiVersion is not %s", path, ErrNotReport, report.APIVersion)
	}
	return r, nil
}
