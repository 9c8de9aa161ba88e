package reporting

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
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
		t.line("%s: started%s", name(e.Document), by(e.Document))
	case run.EventChangeStarted:
		t.line("%s: doing: %s", name(e.Document), Escape(e.Change.Summary))
	case run.EventChangeFinished:
		t.line("%s: %s: %s (%s)", name(e.Document), t.Color.paint(outcomeStyle(e.Result.Outcome), changeWord(e.Result.Outcome)),
			Escape(e.Result.Summary), duration(e.Result.DurationMs))
	case run.EventProgress:
		t.line("%s: progress: %s", name(e.Document), Escape(e.Message))
	case run.EventWarning:
		t.warning(e.Document, e.Message)
	case run.EventRetry:
		t.line("%s: %s: %s", name(e.Document), t.Color.paint(yellow, "waiting"), Escape(e.Message))
	case run.EventDocumentFinished:
		word, rest := ending(e.Document)
		t.line("%s: %s%s", name(e.Document), t.Color.paint(outcomeStyle(e.Document.Outcome), word), rest)
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
	word := runWord(r.Outcome)
	t.line("%s%s", t.Color.paint(outcomeStyle(r.Outcome), word), strings.TrimPrefix(closing(r), word))
}

func (t Text) warning(d *report.Document, text string) {
	t.line("%s: %s: %s", name(d), t.Color.paint(yellow, "warning"), Escape(text))
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
		p.print("%s%s: warning: %s\n", name(e.Document), by(e.Document), Escape(e.Message))
	case run.EventRunFinished:
		for i := range e.Report.Documents {
			d := &e.Report.Documents[i]
			if d.Outcome == report.NotApplicable || d.Outcome == report.Deferred && d.Reason == report.ReasonPhase {
				word, rest := ending(d)
				p.print("%s%s: %s%s\n", name(d), by(d), word, rest) // not planned
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
		p.print("%s%s: cannot be decided yet: %s\n", name(e.Document), by(e.Document), Escape(e.Pending))
	case len(e.Planned) == 0:
		p.print("%s%s: nothing to change\n", name(e.Document), by(e.Document))
	default:
		p.print("%s%s:\n", name(e.Document), by(e.Document))
	}
	for _, w := range e.Document.Warnings {
		p.print("  warning: %s\n", Escape(w))
	}
	for _, c := range e.Planned {
		p.change(c)
	}
}

func (p Plan) change(c run.PlannedChange) {
	var notes []string
	if c.After != "" {
		notes = append(notes, "after "+Escape(c.After))
	}
	if p.Root != "" && c.NeedsLive {
		notes = append(notes, "left for first boot")
	}
	if c.Reboot != pluginv1.RebootNone {
		notes = append(notes, "needs a reboot")
	}
	note := ""
	if len(notes) > 0 {
		note = " (" + strings.Join(notes, ", ") + ")"
	}
	p.print("  %s%s\n", Escape(c.Summary), note)
	if c.Diff == "" {
		return
	}
	head := true
	for line := range strings.SplitSeq(strings.TrimSuffix(EscapeLines(c.Diff), "\n"), "\n") {
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
	return "a reboot is pending: " + Escape(q.Document) + " requested it in this boot"
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
		text += "  hint: " + Escape(e.Hint) + "\n"
	}
	if e.Details != "" {
		text += "  details: " + Escape(e.Details) + " in details.json beside the report, readable by root only\n"
	}
	return text
}

// Failure returns an error without a report, and its hint, as lines that are wrapped as by Errors.
func Failure(message, hint string, width int) string {
	text := "error: " + EscapeLines(message) + "\n"
	if hint != "" {
		text += "  hint: " + Escape(hint) + "\n"
	}
	return Wrap(text, width, hanging)
}

// errorText returns an error without its hint, on one line.
func errorText(e report.Error) string {
	parts := []string{"error"}
	if e.File != "" {
		parts[0] = location(e)
	}
	for _, part := range []string{e.Document, e.Field, e.Message} {
		if part != "" {
			parts = append(parts, Escape(part))
		}
	}
	return strings.Join(parts, ": ")
}

// location returns FILE:LINE:COLUMN, as far as known.
func location(e report.Error) string {
	text := Escape(e.File)
	if e.Line > 0 {
		text += fmt.Sprintf(":%d", e.Line)
		if e.Column > 0 {
			text += fmt.Sprintf(":%d", e.Column)
		}
	}
	return text
}

// closing returns the last line of an apply: its summary and duration.
func closing(r *report.Report) string {
	text := Summary(r)
	if r.Outcome == report.RunInvalid {
		return text
	}
	if took := r.FinishedAt.Sub(r.StartedAt); !r.FinishedAt.IsZero() && took >= 0 { // the run may have set the clock
		text += "; took " + duration(took.Milliseconds())
	}
	return text
}

// Summary counts the documents of an apply by outcome.
func Summary(r *report.Report) string {
	if r.Outcome == report.RunInvalid {
		return invalidSummary(r)
	}
	c := count(r)
	text := fmt.Sprintf("%s: %s: %d changed%s, %d unchanged, %d deferred", runWord(r.Outcome), documents(len(r.Documents)),
		c[report.Changed], inPart(r), c[report.Unchanged], c[report.Deferred])
	return text + rest(c, report.NotApplicable, report.RebootRequired, report.Failed, report.Skipped)
}

// PlanSummary counts the documents of a plan by planned outcome.
func PlanSummary(r *report.Report) string {
	if r.Outcome == report.RunInvalid {
		return invalidSummary(r)
	}
	c := count(r)
	text := ""
	if r.Outcome != report.RunSucceeded {
		text = runWord(r.Outcome) + ": "
	}
	text += fmt.Sprintf("%s: %d to change%s, %d unchanged, %d deferred", documents(len(r.Documents)),
		c[report.Changed], inPart(r), c[report.Unchanged], c[report.Deferred])
	if c[""] > 0 {
		text += fmt.Sprintf(", %d undecided", c[""])
	}
	return text + rest(c, report.NotApplicable, report.Failed, report.Skipped)
}

// ValidSummary returns the result of a validation without errors.
func ValidSummary(r *report.Report) string {
	return documents(len(r.Documents)) + ": no configuration errors"
}

// invalidSummary counts errors, because no document was applied.
func invalidSummary(r *report.Report) string {
	text := "Invalid: " + Counted(len(r.Errors), "error")
	if len(r.Documents) > 0 {
		text += " in " + documents(len(r.Documents))
	}
	return text + "; nothing was changed"
}

// count counts documents by outcome. A partly deferred document counts as changed.
func count(r *report.Report) map[report.Outcome]int {
	out := map[report.Outcome]int{}
	for _, d := range r.Documents {
		if partly(d) {
			out[report.Changed]++
		} else {
			out[d.Outcome]++
		}
	}
	return out
}

// partly reports whether some changes of a document are done and the others deferred to first boot.
func partly(d report.Document) bool {
	return d.Outcome == report.Deferred && slices.ContainsFunc(d.Changes, func(c report.Change) bool { return c.Outcome == report.Changed })
}

// inPart returns the number of partly deferred documents, as text.
func inPart(r *report.Report) string {
	n := 0
	for _, d := range r.Documents {
		if partly(d) {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d in part, the rest deferred)", n)
}

func rest(counts map[report.Outcome]int, outcomes ...report.Outcome) string {
	text := ""
	for _, o := range outcomes {
		if counts[o] > 0 {
			text += fmt.Sprintf(", %d %s", counts[o], outcomeWord(o))
		}
	}
	return text
}

func documents(n int) string { return Counted(n, "document") }

// Counted returns a number with its noun, in the plural unless it is one.
func Counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
