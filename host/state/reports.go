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
	"github.com/machineadm/machineadm/internal/visible"
)

// keptReports is the number of reports in the state directory.
const keptReports = 20

// Reports writes the report of a run, each time it changes, to the run directory and to the store. It is not safe for
// concurrent use.
type Reports struct {
	RunDir string
	Store  *Store // nil for a run without state

	begun   bool            // Begin has moved the earlier report
	written *report.Details // on disk
	run     string          // the run of name
	name    string          // of the report in the store
}

// Begin renames the report of an earlier run, which must not pass for that of this run. It needs no space, so it succeeds
// when Write fails. Write calls it.
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

// Write replaces the report. If one of the directories is full, the other one still gets it.
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

// publish writes to the run directory, the details first, because the report refers to them.
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
	return stateError(removeFile(filepath.Join(r.RunDir, earlierFile)))
}

// writeDetails writes changed details. Most runs have none: then it removes the file of an earlier run.
func (r *Reports) writeDetails(details report.Details) error {
	if r.written != nil && r.written.RunID == details.RunID && maps.Equal(r.written.Entries, details.Entries) {
		return nil
	}
	path := filepath.Join(r.RunDir, DetailsFile)
	data, err := render(details)
	switch {
	case err != nil:
	case len(details.Entries) == 0:
		err = stateError(removeFile(path)) // the report, written next, makes it durable
	default:
		err = writeFile(path, 0o600, data)
	}
	if err == nil {
		r.written = &report.Details{RunID: details.RunID, Entries: maps.Clone(details.Entries)}
	}
	return err
}

// Details returns the entries of details.json that belong to a run, none after a reboot or another run. Only root can read them.
func Details(runDir, runID string) (map[string]string, error) {
	var details report.Details
	data, err := os.ReadFile(filepath.Join(runDir, DetailsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the details: %w", err)
	}
	_ = json.Unmarshal(data, &details) // damaged ones are of no run
	if details.RunID != runID {
		return nil, nil
	}
	return details.Entries, nil
}

// keep writes the copy in the store. The first report of a run gets a new name, and removes the oldest ones.
func (r *Reports) keep(run report.Report, data []byte) error {
	dir := filepath.Join(r.Store.dir, reportsDir)
	if r.name != "" && r.run == run.RunID {
		if err := writeFile(filepath.Join(dir, r.name), 0o600, data); !errors.Is(err, fs.ErrNotExist) {
			return err
		} // the directory was removed
	}
	if err := makeInner(dir); err != nil {
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
	if !slices.Contains(names, r.name) {
		names = append(names, r.name)
	}
	for _, name := range names[:max(0, len(names)-keptReports)] {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return stateError(err)
		}
	}
	return nil
}

func render(value any) ([]byte, error) {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false) // operators read these files
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return nil, stateError(err)
	}
	return visible.JSON(data.Bytes()), nil
}

// nameFor returns the name of a run's report: the existing one, or one with the next number. The number orders the reports,
// because a run can change the clock.
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

// digits is the length of the number at the beginning of a report's name.
const digits = 8

// number returns the number of a report's name, or 0.
func number(name string) int {
	head, _, _ := strings.Cut(name, "-")
	n, err := strconv.Atoi(head)
	if len(head) != digits || err != nil || n < 0 {
		return 0
	}
	return n
}

// reportNames returns the reports in dir, oldest first. It ignores other files.
func reportNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries { // sorted by name
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".json") && number(e.Name()) > 0 {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
