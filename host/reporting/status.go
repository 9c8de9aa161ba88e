// Package reporting renders a run: lines of text, JSON events, and the status of the last run.
package reporting

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting/words"
)

// Status writes the last run for an operator, wrapped to the width of a terminal, 0 for none. The first line is the Headline;
// Color colors its first word. alive means that the run is not over.
func Status(w io.Writer, r report.Report, alive bool, color Color, width int) error {
	var b strings.Builder
	fmt.Fprintln(&b, words.Headline(r, alive))
	statusRun(&b, r)
	if len(r.Documents) > 0 {
		fmt.Fprintln(&b, "documents:")
	}
	for i := range r.Documents {
		statusDocument(&b, r, i, alive)
	}
	for _, q := range r.Reboots {
		fmt.Fprintln(&b, pendingReboot(q))
	}
	if len(r.Errors) > 0 {
		fmt.Fprintln(&b, "errors:")
		for _, e := range r.Errors {
			for line := range strings.Lines(errorLines(e)) {
				b.WriteString("  " + line)
			}
		}
	}
	outcome := r.Outcome
	if outcome == report.RunRunning && !alive {
		outcome = report.RunInterrupted
	}
	text := Wrap(b.String(), width, hanging)
	first := text[:strings.IndexAny(text, " :\n")]
	rest := strings.ReplaceAll(text[len(first):], "\n    warning: ", "\n    "+color.paint(yellow, "warning")+": ") // after Wrap has counted
	_, err := io.WriteString(w, color.paint(outcomeStyle(outcome), first)+rest)
	return err
}

// Details writes what other programs have written in a run, by the name that its errors give.
func Details(w io.Writer, r report.Report, details map[string]string) error {
	var b strings.Builder
	if len(details) == 0 {
		b.WriteString("details: none; another run and a reboot remove them\n")
	}
	for _, name := range slices.Sorted(maps.Keys(details)) {
		fmt.Fprintf(&b, "details of %s", words.Escape(name))
		for _, e := range r.Errors {
			if e.Details == name && e.Document != "" {
				fmt.Fprintf(&b, " (%s)", words.Escape(e.Document))
				break
			}
		}
		b.WriteString(":\n")
		for line := range strings.SplitSeq(strings.Trim(words.EscapeLines(details[name]), "\n"), "\n") {
			b.WriteString(strings.TrimRight("  "+line, " ") + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func statusRun(b *strings.Builder, r report.Report) {
	fmt.Fprintf(b, "run: %s", words.Escape(r.RunID))
	if r.Host.Hostname != "" {
		fmt.Fprintf(b, " on %s", words.Escape(r.Host.Hostname))
	}
	fmt.Fprintf(b, " by machineadm %s\n", words.Escape(r.Host.Machineadm))
	fmt.Fprintf(b, "started: %s", r.StartedAt.Format(words.TimeFormat))
	if took := words.Took(&r); took > 0 && !r.FinishedAt.IsZero() {
		fmt.Fprintf(b, ", took %s", words.Duration(took.Milliseconds()))
	}
	fmt.Fprintln(b)
	if r.Outcome != report.RunRunning {
		fmt.Fprintf(b, "exit code: %d\n", r.ExitCode)
	}
	if r.Root != "" {
		fmt.Fprintf(b, "image: %s\n", words.Escape(r.Root))
	}
	if r.Phase != "" && r.Phase != "all" {
		fmt.Fprintf(b, "phase: %s only\n", words.Escape(r.Phase))
	}
}

func statusDocument(b *strings.Builder, r report.Report, i int, alive bool) {
	d := &r.Documents[i]
	fmt.Fprintf(b, "  %s%s: %s\n", words.Name(d), by(d), standing(r, i, alive))
	for _, c := range d.Changes {
		if c.Outcome == report.Changed && d.Outcome == report.Changed {
			continue // the document's line is sufficient
		}
		word := changeWord(c.Outcome)
		if c.Outcome == report.Interrupted && r.Outcome == report.RunRunning && alive {
			word = "doing"
		}
		fmt.Fprintf(b, "    %s: %s\n", word, words.Escape(c.Summary))
	}
	for _, warning := range d.Warnings {
		fmt.Fprintf(b, "    warning: %s\n", words.Escape(warning))
	}
}

// standing returns the outcome of a document or, in the report of an unfinished run, its state.
func standing(r report.Report, i int, alive bool) string {
	at, begun := words.Current(r)
	switch d := &r.Documents[i]; {
	case d.Outcome != "":
		word, rest := ending(d)
		return word + rest
	case begun && i == at && alive:
		return "applying"
	case begun && i == at:
		return "interrupted"
	case alive:
		return "waiting"
	default:
		return "not reached"
	}
}
