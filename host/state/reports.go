package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/atomicfile"
	"github.com/machineadm/machineadm/internal/visible"
)

// The files of the run directory.
const (
	ReportFile  = "report.json"  // 0644: the last run
	DetailsFile = "details.json" // 0600: other programs' words; missing when the run has none

	// earlierFile is the report of an earlier run, from the beginning of a run until its own report is written. Without
	// ReportFile beside it, the last run has left no report.
	earlierFile = "report.earlier.json"
)

// Reports writes the report of a run, as often as it changes, to the run directory and, when there is a store, among
// the last reports. It is not safe for concurrent use.
type Reports struct {
	RunDir string
	Store  *Store // nil for a run that keeps no state

	begun   bool            // the report of an earlier run is no longer in place
	written *report.Details // the last ones
	run     string          // whose report was written last
	name    string          // of that report among the last ones
}

// Begin moves the report of an earlier run aside, so that it does not pass for that of this run, which may find no room
// for its own. Renaming needs none. Write begins by itself.
func (r *Reports) Begin() error {
	if r.begun {
		return nil
	}
	path := filepath.Join(r.RunDir, ReportFile)
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		if err := os.Rename(path, filepath.Join(r.RunDir, earlierFile)); err != nil {
			return stateError(err)
		}
	}
	r.begun = true
	return nil
}

// Write replaces the report on disk. Where one of its places is full, the other still gets it.
func (r *Reports) Write(run report.Report, details map[string]string) error {
	if run.Documents == nil {
		run.Documents = []report.Document{}
	}
	data, err := render(run)
	if err != nil {
		return err
	}
	err = r.publish(run.RunID, data, details)
	if r.Store == nil {
		return err
	}
	return errors.Join(err, r.keep(run, data))
}

// publish writes to the run directory. Details are written first, so that a report never points at what is not there.
func (r *Reports) publish(runID string, data []byte, details map[string]string) error {
	if err := MakeRunDir(r.RunDir); err != nil {
		return err
	}
	if err := r.Begin(); err != nil {
		return err
	}
	if err := r.writeDetails(report.Details{RunID: runID, Entries: details}); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(r.RunDir, ReportFile), 0o644, data); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(r.RunDir, earlierFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return stateError(err)
	}
	return nil
}

// keep writes the copy among the last reports. That directory is put in order by the first report of a run; only the holder
// of the lock writes there.
func (r *Reports) keep(run report.Report, data []byte) error {
	dir := filepath.Join(r.Store.dir, reportsDir)
	if r.name != "" && r.run == run.RunID {
		if err := writeFile(filepath.Join(dir, r.name), 0o600, data); !errors.Is(err, fs.ErrNotExist) {
			return err
		} // somebody has removed the directory: it is made again
	}
	if err := inner(dir); err != nil {
		return stateError(err)
	}
	names, err := reportNames(dir)
	if err != nil {
		return stateError(err)
	}
	r.run, r.name = run.RunID, nameFor(run, names)
	if err := writeFile(filepath.Join(dir, r.name), 0o600, data); err != nil {
		return err
	}
	if err := sweep(dir); err != nil {
		return stateError(err)
	}
	return stateError(prune(dir, names, r.name))
}

// writeDetails leaves details alone that this run has written already: it writes many reports. Most runs have none, and then
// there is no file either; that of an earlier run goes.
func (r *Reports) writeDetails(details report.Details) error {
	if r.written != nil && r.written.RunID == details.RunID && maps.Equal(r.written.Entries, details.Entries) {
		return nil
	}
	path := filepath.Join(r.RunDir, DetailsFile)
	if len(details.Entries) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return stateError(err)
		} // durable with the report, which is written next
	} else {
		data, err := render(details)
		if err != nil {
			return err
		}
		if err := writeFile(path, 0o600, data); err != nil {
			return err
		}
	}
	r.written = &report.Details{RunID: details.RunID, Entries: maps.Clone(details.Entries)}
	return nil
}

// sweep removes what a killed run left half-written. No other run removes it: each report has a name of its own.
func sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !atomicfile.Reserved(e.Name()) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func render(value any) ([]byte, error) {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false) // people read these files
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return nil, stateError(err)
	}
	return visible.JSON(data.Bytes()), nil
}

func writeFile(path string, mode fs.FileMode, data []byte) error {
	return stateError(atomicfile.WriteFile(path, data, atomicfile.Options{Mode: mode, KeepLabel: true}))
}

// nameFor is the name of a run's report: that of its last writing, or the next number. A number, because runs set the
// clock: the last run may well be the one with the earliest time.
func nameFor(run report.Report, names []string) string {
	suffix := "-" + run.RunID + ".json"
	for _, name := range names {
		if strings.HasSuffix(name, suffix) {
			return name
		}
	}
	next := 1
	if len(names) > 0 {
		next = number(names[len(names)-1]) + 1
	}
	return fmt.Sprintf("%0*d-%s%s", digits, next, run.StartedAt.UTC().Format("20060102T150405Z"), suffix)
}

// digits of the number that begins the name of a report: names sort by it.
const digits = 8

// number is 0 for a name that does not begin with one.
func number(name string) int {
	head, _, _ := strings.Cut(name, "-")
	n, err := strconv.Atoi(head)
	if len(head) != digits || err != nil || n < 0 {
		return 0
	}
	return n
}

// prune keeps the last reports.
func prune(dir string, names []string, written string) error {
	if !slices.Contains(names, written) {
		names = append(names, written)
	}
	for len(names) > keptReports {
		if err := os.Remove(filepath.Join(dir, names[0])); err != nil {
			return err
		}
		names = names[1:]
	}
	return nil
}

// reportNames are the reports of dir, oldest first. Files of other names are not ours.
func reportNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries { // in the order of their names
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".json") && number(e.Name()) > 0 {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

var (
	// ErrNoReport says that no run has left a report.
	ErrNoReport = errors.New("no run has left a report")
	// ErrLost says that the last run has left none, while an earlier one has.
	ErrLost = errors.New("the last run has left no report")
)

// Last reads the report of the last run: the one in the run directory, else (after a reboot, when that is gone) the
// newest one of the state directory. It also says which file that is. After ErrLost it is where an earlier report is.
func Last(runDir, stateDir string) (report.Report, string, error) {
	path := filepath.Join(runDir, ReportFile)
	last, err := read(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return last, path, err
	}
	kept, path, err := newest(stateDir)
	earlier := filepath.Join(runDir, earlierFile)
	if before, beforeErr := read(earlier); beforeErr == nil && (err != nil || !kept.StartedAt.After(before.StartedAt)) {
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
		return report.Report{}, dir, fmt.Errorf("look for reports: %w", err)
	case len(names) == 0:
		return report.Report{}, "", ErrNoReport
	}
	path := filepath.Join(dir, names[len(names)-1])
	last, err := read(path)
	return last, path, err
}

func read(path string) (report.Report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return report.Report{}, fmt.Errorf("read the report: %w", err)
	}
	var r report.Report
	if err := json.Unmarshal(data, &r); err != nil {
		return report.Report{}, fmt.Errorf("%s is not a report: %w", path, err)
	}
	if r.Kind != report.Kind {
		return report.Report{}, fmt.Errorf("%s is not a report: its kind is not %s", path, report.Kind)
	}
	if r.APIVersion != report.APIVersion {
		return report.Report{}, fmt.Errorf("%s is the report of another release: its apiVersion is not %s", path, report.APIVersion)
	}
	return r, nil
}
