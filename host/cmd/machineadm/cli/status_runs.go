package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting/timeline"
	"github.com/machineadm/machineadm/host/reporting/words"
	"github.com/machineadm/machineadm/host/session"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/trust"
)

var errNoSuchRun = errors.New("no run that is kept has this ID")

// bindUTC adds the flag --utc.
func bindUTC(c *cobra.Command, utc *bool) {
	c.Flags().BoolVar(utc, "utc", false, "show times in UTC instead of the time zone of this machine")
}

// zone is the time zone in which times are shown.
func zone(utc bool) *time.Location {
	if utc {
		return time.UTC
	}
	return time.Local
}

// noRun returns the error for a report that cannot be shown.
func noRun(err error, path, runDir, stateDir string) error {
	exit := &exitError{code: report.ExitFailed, message: err.Error()}
	switch {
	case errors.Is(err, state.ErrNoReport):
		others := ""
		if other, at, err := state.Last(session.DefaultRunDir(), session.DefaultStateDir()); err == nil {
			others = fmt.Sprintf("; without these flags, status shows the run of %s in %s", other.StartedAt.Local().Format(words.TimeFormat), at)
		}
		exit.message = fmt.Sprintf("there is no report in %s or %s", runDir, stateDir)
		exit.hint = "run machineadm apply first; after a run with --run-dir or --state-dir, give the same flags" + others
	case errors.Is(err, state.ErrLost):
		exit.message = fmt.Sprintf("%s in %s", err, runDir)
		exit.hint = "free space in " + trust.Quote(runDir) + " and run again, which is safe; an earlier report is " + trust.Quote(path)
	case errors.Is(err, state.ErrNotReport):
		exit.hint = "run the same command again, which is safe and writes a new report"
	case errors.Is(err, errNoSuchRun):
		exit.hint = "machineadm status --list shows the runs that are kept"
	case errors.Is(err, fs.ErrPermission):
		exit.hint = "run as root: after a reboot, and of earlier runs, only the state directory has the report, which only root can read"
	}
	return exit
}

// findRun returns the report of the run whose ID begins like this, and its path; of the last run for an empty ID.
func findRun(id, runDir, stateDir string) (report.Report, string, error) {
	last, path, err := state.Last(runDir, stateDir)
	if id == "" || err == nil && strings.HasPrefix(last.RunID, id) {
		return last, path, err
	}
	kept, err := state.KeptReports(stateDir)
	if err != nil {
		return report.Report{}, "", err
	}
	var found []state.Kept
	for _, k := range kept {
		if strings.HasPrefix(k.RunID, id) {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 0:
		return report.Report{}, "", fmt.Errorf("--run %q: %w", id, errNoSuchRun)
	case 1:
		return found[0].Report, found[0].Path, nil
	default:
		return report.Report{}, "", usage(fmt.Sprintf("--run %q is the beginning of several IDs", id))
	}
}

// listRuns writes a line for each run that is kept, the newest first.
func listRuns(s streams, output string, utc bool, runDir, stateDir string) error {
	kept, err := state.KeptReports(stateDir)
	if err == nil && len(kept) == 0 {
		err = state.ErrNoReport
	}
	if err != nil {
		return noRun(err, "", runDir, stateDir)
	}
	if output == "json" {
		all := make([]report.Report, len(kept))
		for i, k := range kept {
			all[i] = k.Report
		}
		return writeJSON(s.out, all)
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "RUN\tSTARTED\tTOOK\tEXIT\tRESULT") // into memory
	for i, k := range kept {
		alive := i == 0 && k.Outcome == report.RunRunning && state.Held(session.LockAt(k.Root, runDir))
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", words.Escape(k.RunID), k.StartedAt.In(zone(utc)).Format(words.TimeFormat), // likewise
			words.Duration(words.Took(&k.Report).Milliseconds()), k.ExitCode, words.Headline(k.Report, alive))
	}
	_ = w.Flush() // likewise
	width := columns(s.out)
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSuffix(line, "\n")
		if width > 2 && utf8.RuneCountInString(line) > width {
			line = string([]rune(line)[:width-2]) + ".."
		}
		if _, err := io.WriteString(s.out, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// showTimeline writes the picture of a run and of the boots before it.
func showTimeline(s streams, format string, utc bool, stateDir string, last report.Report, alive bool) error {
	kept, err := state.KeptReports(stateDir)
	if errors.Is(err, fs.ErrPermission) {
		_, _ = fmt.Fprintln(s.err, "note: only root can read the reports of earlier boots") // standard error is the last resort
	}
	var now time.Time
	if alive && last.Outcome == report.RunRunning {
		now = time.Now()
	}
	return writeTimeline(s, timeline.Of(state.History(kept, last), now), format, utc)
}

// writeTimeline writes a picture in the format text or svg.
func writeTimeline(s streams, l timeline.Layout, format string, utc bool) error {
	l.Begin = l.Begin.In(zone(utc))
	if format == "svg" {
		return timeline.SVG(s.out, l)
	}
	color, end := coloring(s.out)
	defer end()
	width := columns(s.out)
	if width == 0 {
		width = timeline.DefaultWidth
	}
	return timeline.Text(s.out, l, width, bool(color))
}
