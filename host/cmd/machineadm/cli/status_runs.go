package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/reporting/timeline"
	"github.com/machineadm/machineadm/host/reporting/words"
)

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

// listRuns writes a line for each run that is kept, the newest first.
func listRuns(s streams, output string, utc bool, reports reporting.Kept) error {
	kept, err := reports.All()
	if err != nil {
		return err
	}
	if output == "json" {
		return reporting.WriteJSON(s.out, kept)
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "RUN\tSTARTED\tTOOK\tEXIT\tRESULT") // into memory
	for i, k := range kept {
		alive := i == 0 && k.Outcome == report.RunRunning && reports.Alive(k)
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", words.Escape(k.RunID), k.StartedAt.In(zone(utc)).Format(words.TimeFormat), // likewise
			words.Duration(words.Took(&k).Milliseconds()), k.ExitCode, words.Headline(k, alive))
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
func showTimeline(s streams, format string, utc bool, reports reporting.Kept, last report.Report, alive bool) error {
	history, err := reports.History(last)
	if err != nil {
		s.note("note: only root can read the reports of earlier boots")
	}
	var now time.Time
	if alive && last.Outcome == report.RunRunning {
		now = time.Now()
	}
	return writeTimeline(s, timeline.Of(history, now), format, utc)
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
