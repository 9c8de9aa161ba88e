package reporting

import (
	"fmt"
	"io"
	"strings"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting/words"
	"github.com/machineadm/machineadm/host/run"
)

// Text writes one line for each event of an apply. It ignores write errors: a closed pipe must not stop a run.
type Text struct {
	Out, Err io.Writer
	Color    Color
	Width    int // of Err, 0 if it is not a terminal
}

// Observe writes an event.
func (t Text) Observe(e run.Event) {
	switch e.Type {
	case run.EventDocumentPlanned:
		for _, w := range e.Document.Warnings {
			t.warning(e.Document, w)
		}
	case run.EventDocumentStarted:
		t.line("%s: started%s", words.Name(e.Document), by(e.Document))
	case run.EventChangeStarted:
		t.line("%s: doing: %s", words.Name(e.Document), words.Escape(e.Change.Summary))
	case run.EventChangeFinished:
		t.line("%s: %s: %s (%s)", words.Name(e.Document), t.Color.paint(outcomeStyle(e.Result.Outcome), changeWord(e.Result.Outcome)),
			words.Escape(e.Result.Summary), words.Duration(e.Result.DurationMs))
	case run.EventChangeRunning:
		t.line("%s: still doing: %s (%s)", words.Name(e.Document), words.Escape(e.Result.Summary), words.Duration(e.Result.DurationMs))
	case run.EventProgress:
		t.line("%s: progress: %s", words.Name(e.Document), words.Escape(e.Message))
	case run.EventWarning:
		t.warning(e.Document, e.Message)
	case run.EventRetry:
		t.line("%s: %s: %s", words.Name(e.Document), t.Color.paint(yellow, "waiting"), words.Escape(e.Message))
	case run.EventDocumentFinished:
		word, rest := ending(e.Document)
		t.line("%s: %s%s", words.Name(e.Document), t.Color.paint(outcomeStyle(e.Document.Outcome), word), rest)
	case run.EventRunFinished:
		t.end(e.Report)
	case run.EventRunStarted:
	}
}

func (t Text) end(r *report.Report) {
	Errors(t.Err, r, t.Width)
	for _, q := range r.Reboots {
		t.line("%s", pendingReboot(q))
	}
	word := words.RunWord(r.Outcome)
	t.line("%s%s", t.Color.paint(outcomeStyle(r.Outcome), word), strings.TrimPrefix(closing(r), word))
}

func (t Text) warning(d *report.Document, text string) {
	t.line("%s: %s: %s", words.Name(d), t.Color.paint(yellow, "warning"), words.Escape(text))
}

func (t Text) line(format string, args ...any) {
	_, _ = fmt.Fprintf(t.Out, format+"\n", args...)
}

// Plan writes the changes of a plan, as diffs.
type Plan struct {
	Out, Err io.Writer
	Root     string
	Color    Color
	Width    int // of Err, 0 if it is not a terminal
}

// Observe writes an event.
func (p Plan) Observe(e run.Event) {
	switch e.Type {
	case run.EventDocumentPlanned:
		p.document(e)
	case run.EventWarning: // of a document that is resolved instead of planned
		p.print("%s%s: %s: %s\n", words.Name(e.Document), by(e.Document), p.Color.paint(yellow, "warning"), words.Escape(e.Message))
	case run.EventRunFinished:
		for i := range e.Report.Documents {
			d := &e.Report.Documents[i]
			if d.Outcome == report.NotApplicable || d.Outcome == report.Deferred && d.Reason == report.ReasonPhase {
				word, rest := ending(d)
				p.print("%s%s: %s%s\n", words.Name(d), by(d), word, rest) // not planned
			}
		}
		Errors(p.Err, e.Report, p.Width)
		for _, q := range e.Report.Reboots {
			p.print("%s\n", pendingReboot(q))
		}
		p.print("%s\n", PlanSummary(e.Report))
	default:
	}
}

func (p Plan) document(e run.Event) {
	switch {
	case e.Pending != "":
		p.print("%s%s: pending: %s\n", words.Name(e.Document), by(e.Document), words.Escape(e.Pending))
	case len(e.Planned) == 0:
		p.print("%s%s: unchanged\n", words.Name(e.Document), by(e.Document))
	default:
		p.print("%s%s:\n", words.Name(e.Document), by(e.Document))
	}
	for _, w := range e.Document.Warnings {
		p.print("  %s: %s\n", p.Color.paint(yellow, "warning"), words.Escape(w))
	}
	for _, c := range e.Planned {
		p.change(c)
	}
}

func (p Plan) change(c run.PlannedChange) {
	var notes []string
	if c.After != "" {
		notes = append(notes, "after "+words.Escape(c.After))
	}
	if p.Root != "" && c.NeedsLive {
		notes = append(notes, "deferred to first boot")
	}
	if c.Reboot != pluginv1.RebootNone {
		notes = append(notes, "needs a reboot")
	}
	note := ""
	if len(notes) > 0 {
		note = " (" + strings.Join(notes, ", ") + ")"
	}
	p.print("  %s%s\n", words.Escape(c.Summary), note)
	if c.Diff == "" {
		return
	}
	head := true
	for line := range strings.SplitSeq(strings.TrimSuffix(words.EscapeLines(c.Diff), "\n"), "\n") {
		head = head && !strings.HasPrefix(line, "@@")
		p.print("      %s\n", p.Color.paint(diffStyle(line, head), line))
	}
}

// diffStyle returns the style of a line of a unified diff; head means a line before the first hunk.
func diffStyle(line string, head bool) style {
	switch {
	case head && (strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ")):
		return bold
	case strings.HasPrefix(line, "-"):
		return red
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "@@"):
		return cyan
	default:
		return plain
	}
}

func (p Plan) print(format string, args ...any) { _, _ = fmt.Fprintf(p.Out, format, args...) }

// pendingReboot returns the line for a requested reboot that has not happened.
func pendingReboot(q report.Reboot) string {
	return "a reboot is pending: " + words.Escape(q.Document) + " requested it in this boot"
}

// Errors writes every error of a report as FILE:LINE:COLUMN: KIND/NAME: FIELD: MESSAGE, followed by its hint. They are
// wrapped to the width of a terminal, 0 for none.
func Errors(w io.Writer, r *report.Report, width int) {
	for _, e := range r.Errors {
		_, _ = io.WriteString(w, Wrap(errorLines(e), width, hanging))
	}
}

func errorLines(e report.Error) string {
	text := errorText(e) + "\n"
	if e.Hint != "" {
		text += "  hint: " + words.Escape(e.Hint) + "\n"
	}
	if e.Details != "" {
		text += "  details: " + words.Escape(e.Details) + " in details.json beside the report, readable by root only\n"
	}
	return text
}

// Failure returns an error without a report, and its hint, as lines that are wrapped as by Errors.
func Failure(message, hint string, width int) string {
	text := "error: " + words.EscapeLines(message) + "\n"
	if hint != "" {
		text += "  hint: " + words.Escape(hint) + "\n"
	}
	return Wrap(text, width, hanging)
}

// errorText returns an error without its hint, on one line.
func errorText(e report.Error) string {
	parts := []string{"error"}
	if e.File != "" {
		parts[0] = words.Location(e)
	}
	for _, part := range []string{e.Document, e.Field, e.Message} {
		if part != "" {
			parts = append(parts, words.Escape(part))
		}
	}
	return strings.Join(parts, ": ")
}

// closing returns the last line of an apply: its summary and duration.
func closing(r *report.Report) string {
	text := words.Summary(r)
	if r.Outcome == report.RunInvalid {
		return text
	}
	if took := words.Took(r); took > 0 && !r.FinishedAt.IsZero() {
		text += "; took " + words.Duration(took.Milliseconds())
	}
	return text
}

// PlanSummary counts the documents of a plan by planned outcome.
func PlanSummary(r *report.Report) string {
	if r.Outcome == report.RunInvalid {
		return words.InvalidSummary(r)
	}
	c := words.Count(r)
	text := ""
	if r.Outcome != report.RunSucceeded {
		text = words.RunWord(r.Outcome) + ": "
	}
	text += fmt.Sprintf("%s: %d to change%s, %d unchanged, %d deferred", words.Documents(len(r.Documents)),
		c[report.Changed], words.InPart(r), c[report.Unchanged], c[report.Deferred])
	if c[""] > 0 {
		text += fmt.Sprintf(", %d pending", c[""])
	}
	return text + words.Rest(c, report.NotApplicable, report.Failed, report.Skipped)
}

// ValidSummary returns the result of a validation without errors.
func ValidSummary(r *report.Report) string {
	return words.Documents(len(r.Documents)) + ": no configuration errors"
}
