package reporting

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/report"
)

// Status writes the last run for a person at 3 a.m. Its first line says how it ended, at which document and phase,
// why, what to do, and whether running again is safe.
func Status(w io.Writer, r report.Report, alive bool) error {
	var b strings.Builder
	fmt.Fprintln(&b, Headline(r, alive))
	fmt.Fprintf(&b, "run %s, started %s", Escape(r.RunID), r.StartedAt.UTC().Format(time.RFC3339))
	if !r.FinishedAt.IsZero() {
		fmt.Fprintf(&b, ", took %s", r.FinishedAt.Sub(r.StartedAt).Round(time.Millisecond))
	}
	fmt.Fprintf(&b, ", exit code %d, machineadm %s\n", r.ExitCode, Escape(r.Host.Machineadm))
	for i := range r.Documents {
		statusDocument(&b, &r.Documents[i])
	}
	if len(r.Errors) > 0 {
		fmt.Fprintln(&b, "errors:")
		for _, e := range r.Errors {
			fmt.Fprintf(&b, "  %s\n", ErrorText(e))
			if e.Hint != "" {
				fmt.Fprintf(&b, "    hint: %s\n", Escape(e.Hint))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func statusDocument(b *strings.Builder, d *report.Document) {
	outcome := string(d.Outcome)
	if outcome == "" {
		outcome = "not reached"
	}
	fmt.Fprintf(b, "  %-14s %s%s", outcome, name(d), by(d))
	if d.DurationMs > 0 {
		fmt.Fprintf(b, " in %s", duration(d.DurationMs))
	}
	fmt.Fprintln(b)
	for _, c := range d.Changes {
		if c.Outcome != report.Changed || d.Error != nil {
			fmt.Fprintf(b, "    %-12s %s\n", changeWordStatus(c.Outcome), Escape(c.Summary))
		}
	}
	for _, warning := range d.Warnings {
		fmt.Fprintf(b, "    warning: %s\n", Escape(warning))
	}
	if d.Error != nil {
		fmt.Fprintf(b, "    %s: %s\n", Escape(d.Error.Code), ErrorText(*d.Error))
		if d.Error.Hint != "" {
			fmt.Fprintf(b, "    hint: %s\n", Escape(d.Error.Hint))
		}
		if d.Error.Details != "" {
			fmt.Fprintf(b, "    details: entry %s of details.json\n", Escape(d.Error.Details))
		}
	}
}

func changeWordStatus(o report.Outcome) string {
	if o == report.Deferred {
		return "deferred"
	}
	return changeWord(o)
}

// Headline is the first line of a status: document, phase, cause, remedy, safe to retry.
func Headline(r report.Report, alive bool) string {
	if r.Outcome == report.RunRunning {
		if alive {
			return "Running: " + at(r)
		}
		return "Interrupted: " + at(r) + ": its process ended without a word (killed, or the machine went down); run it again: that is safe"
	}
	if r.Outcome == report.RunSucceeded {
		return Summary(&r)
	}
	cause, document := firstError(r)
	parts := []string{string(r.Outcome)}
	if document != "" {
		parts = append(parts, Escape(document))
	}
	if phase := phaseOf(r); phase != "" {
		parts = append(parts, phase)
	}
	text := strings.Join(parts, ": ") + ": " + Escape(cause.Message)
	if cause.Hint != "" {
		text += "; " + Escape(cause.Hint)
	}
	return text + "; " + retry(r)
}

// at says where a run stood when its last word was written.
func at(r report.Report) string {
	for i := range r.Documents {
		d := &r.Documents[i]
		for _, c := range d.Changes {
			if c.Outcome == report.Interrupted {
				return name(d) + ": " + Escape(c.Summary)
			}
		}
	}
	return "before or between changes"
}

func firstError(r report.Report) (report.Error, string) {
	for _, d := range r.Documents {
		if d.Error != nil {
			return *d.Error, d.Kind + "/" + d.Name
		}
	}
	if len(r.Errors) > 0 {
		return r.Errors[0], r.Errors[0].Document
	}
	return report.Error{Message: "no cause was recorded"}, ""
}

// phaseOf says how far a run came: reading, planning or applying.
func phaseOf(r report.Report) string {
	if len(r.Documents) == 0 {
		return "reading"
	}
	for _, d := range r.Documents {
		for _, c := range d.Changes {
			if c.Outcome != "" {
				return "applying"
			}
		}
		if d.DurationMs > 0 {
			return "applying"
		}
	}
	return "planning"
}

func retry(r report.Report) string {
	switch r.Outcome {
	case report.RunInvalid:
		return "nothing was changed, running again needs a corrected stream"
	case report.RunRebootRequired:
		return "running again before the reboot changes nothing"
	default:
		return "running again is safe"
	}
}
