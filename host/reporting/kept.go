package reporting

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/machine"
	"github.com/machineadm/machineadm/host/reporting/words"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/trust"
)

var errNoSuchRun = errors.New("no run that is kept has this ID")

// Kept are the reports that runs have left in two directories.
type Kept struct{ StateDir, RunDir string }

// Read reads the file of a report.
func Read(file string) (report.Report, error) {
	r, err := state.Read(file)
	if err != nil {
		return r, &report.Error{Message: err.Error(), Hint: "give files like /run/machineadm/report.json"}
	}
	return r, nil
}

// Find returns the report of the run whose ID begins like this, and its path; of the last run for an empty ID.
func (r Kept) Find(id string) (report.Report, string, error) {
	last, path, err := state.Last(r.RunDir, r.StateDir)
	if id == "" || err == nil && strings.HasPrefix(last.RunID, id) {
		return last, path, r.explained(err, path)
	}
	kept, err := state.KeptReports(r.StateDir)
	if err != nil {
		return report.Report{}, "", r.explained(err, "")
	}
	var found []state.Kept
	for _, k := range kept {
		if strings.HasPrefix(k.RunID, id) {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 0:
		return report.Report{}, "", r.explained(fmt.Errorf("--run %q: %w", id, errNoSuchRun), "")
	case 1:
		return found[0].Report, found[0].Path, nil
	default:
		return report.Report{}, "", &report.Error{Message: fmt.Sprintf("--run %q is the beginning of several IDs", id)}
	}
}

// All returns the reports in the state directory, the newest first.
func (r Kept) All() ([]report.Report, error) {
	kept, err := state.KeptReports(r.StateDir)
	if err == nil && len(kept) == 0 {
		err = state.ErrNoReport
	}
	all := make([]report.Report, len(kept))
	for i, k := range kept {
		all[i] = k.Report
	}
	return all, r.explained(err, "")
}

// Alive reports whether the run of a report holds its lock.
func (r Kept) Alive(last report.Report) bool { return state.Held(machine.LockAt(last.Root, r.RunDir)) }

// History returns a report and the reports of the boots before it, without the latter and with an error for a user other than root.
func (r Kept) History(last report.Report) ([]report.Report, error) {
	kept, err := state.KeptReports(r.StateDir)
	if !errors.Is(err, fs.ErrPermission) {
		err = nil
	}
	return state.History(kept, last), err
}

// Unsent returns when the report that waits to be delivered was first tried. Only root can read it.
func (r Kept) Unsent() (since time.Time, waits bool) {
	o, err := state.OutboxIn(r.StateDir).Load()
	if err != nil || o == nil {
		return time.Time{}, false
	}
	return o.FirstTry, true
}

// maxCause bounds a cause, in bytes.
const maxCause = 512

// Explain adds to the messages of errors the causes in their details, which it returns. The report holds no output of other programs.
func (r Kept) Explain(last *report.Report) (details map[string]string, err error) {
	if details, err = state.Details(r.RunDir, last.RunID); err != nil {
		err = &report.Error{Message: err.Error(), Hint: "run as root: only root can read what other programs have written"}
	}
	for i, e := range last.Errors {
		line, _, _ := strings.Cut(details[e.Details], "\n")
		if cause, ok := strings.CutPrefix(line, pluginv1.CausePrefix); ok {
			last.Errors[i].Message = strings.TrimRight(e.Message, ".; ") + ": " + strings.ToValidUTF8(cause[:min(len(cause), maxCause)], "")
		}
	}
	return details, err
}

// explained returns the error for a report that cannot be shown, nil for nil.
func (r Kept) explained(err error, path string) error {
	if err == nil {
		return nil
	}
	e := &report.Error{Message: err.Error()}
	switch {
	case errors.Is(err, state.ErrNoReport):
		others := ""
		if other, at, err := state.Last(machine.RunDir(), machine.StateDir()); err == nil {
			others = fmt.Sprintf("; without these flags, status shows the run of %s in %s", other.StartedAt.Local().Format(words.TimeFormat), at)
		}
		e.Message = fmt.Sprintf("there is no report in %s or %s", r.RunDir, r.StateDir)
		e.Hint = "run machineadm apply first; after a run with --run-dir or --state-dir, give the same flags" + others
	case errors.Is(err, state.ErrLost):
		e.Message = fmt.Sprintf("%s in %s", err, r.RunDir)
		e.Hint = "free space in " + trust.Quote(r.RunDir) + " and run again, which is safe; an earlier report is " + trust.Quote(path)
	case errors.Is(err, state.ErrNotReport):
		e.Hint = "run the same command again, which is safe and writes a new report"
	case errors.Is(err, errNoSuchRun):
		e.Hint = "machineadm status --list shows the runs that are kept"
	case errors.Is(err, fs.ErrPermission):
		e.Hint = "run as root: after a reboot, and of earlier runs, only the state directory has the report, which only root can read"
	}
	return e
}
