package reporting

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run"
)

// Text writes one line for each event of an apply. Errors of writing are dropped: a closed pipe must not stop a
// machine half-way.
type Text struct {
	Out, Err io.Writer
}

// Observe takes an event.
func (t Text) Observe(e run.Event) {
	switch e.Type {
	case run.EventDocumentStarted:
		t.line("%s: start%s", name(e.Document), by(e.Document))
	case run.EventChangeStarted:
		t.line("%s: doing: %s", name(e.Document), Escape(e.Change.Summary))
	case run.EventChangeFinished:
		t.line("%s: %s: %s (%s)", name(e.Document), changeWord(e.Result.Outcome), Escape(e.Result.Summary),
			duration(e.Result.DurationMs))
	case run.EventProgress:
		t.line("%s: %s", name(e.Document), Escape(e.Message))
	case run.EventWarning:
		t.line("%s: warning: %s", name(e.Document), Escape(e.Message))
	case run.EventRetry:
		t.line("%s: waiting: %s", name(e.Document), Escape(e.Message))
	case run.EventDocumentFinished:
		t.finished(e.Document)
	case run.EventRunFinished:
		t.end(e.Report)
	case run.EventRunStarted, run.EventDocumentPlanned:
	}
}

func (t Text) finished(d *report.Document) {
	switch d.Outcome {
	case report.Changed, report.Unchanged:
		t.line("%s: %s (%s)", name(d), d.Outcome, duration(d.DurationMs))
	case report.Deferred:
		t.line("%s: Deferred: %s", name(d), deferredWhy(d))
	default:
		t.line("%s: %s", name(d), d.Outcome)
	}
}

func (t Text) end(r *report.Report) {
	Errors(t.Err, r)
	t.line("%s", Summary(r))
}

func (t Text) line(format string, args ...any) {
	_, _ = fmt.Fprintf(t.Out, format+"\n", args...)
}

// Plan writes what would change, as diffs. It is an observer of a plan.
type Plan struct {
	Out, Err io.Writer
	Root     string
}

// Observe takes an event.
func (p Plan) Observe(e run.Event) {
	switch e.Type {
	case run.EventDocumentPlanned:
		p.document(e)
	case run.EventRunFinished:
		for i := range e.Report.Documents {
			d := &e.Report.Documents[i]
			if d.Outcome == report.NotApplicable {
				p.print("%s: NotApplicable: metadata.when does not match this machine\n", name(d))
			}
			if d.Outcome == report.Deferred && d.Reason == report.ReasonPhase {
				p.print("%s%s: Deferred: %s\n", name(d), by(d), deferredWhy(d))
			}
		}
		Errors(p.Err, e.Report)
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

func (p Plan) change(c pluginv1.Change) {
	notes := ""
	if p.Root != "" && c.NeedsLive {
		notes += " (left for first boot)"
	}
	if c.Reboot != pluginv1.RebootNone {
		notes += " (needs a reboot)"
	}
	p.print("  %s%s\n", Escape(c.Summary), notes)
	if c.Diff == "" {
		return
	}
	for line := range strings.Lines(strings.TrimSuffix(EscapeLines(c.Diff), "\n") + "\n") {
		p.print("      %s", line)
	}
}

func (p Plan) print(format string, args ...any) { _, _ = fmt.Fprintf(p.Out, format, args...) }

// Errors writes every error of a report: FILE:LINE:COLUMN: KIND/NAME: FIELD: MESSAGE, then what to do.
func Errors(w io.Writer, r *report.Report) {
	for _, e := range r.Errors {
		writeError(w, e)
	}
	for _, d := range r.Documents {
		if d.Error == nil || listed(r.Errors, *d.Error) {
			continue
		}
		e := *d.Error
		e.Document = d.Kind + "/" + d.Name
		writeError(w, e)
	}
}

func listed(all []report.Error, e report.Error) bool {
	for _, known := range all {
		if known.Message == e.Message && known.Field == e.Field && known.Line == e.Line {
			return true
		}
	}
	return false
}

func writeError(w io.Writer, e report.Error) {
	_, _ = fmt.Fprintln(w, ErrorText(e))
	if e.Hint != "" {
		_, _ = fmt.Fprintf(w, "  hint: %s\n", Escape(e.Hint))
	}
	if e.Details != "" {
		_, _ = fmt.Fprintf(w, "  details: entry %s of details.json\n", Escape(e.Details))
	}
}

// ErrorText is an error on one line.
func ErrorText(e report.Error) string {
	var parts []string
	if e.File != "" {
		place := Escape(e.File)
		if e.Line > 0 {
			place = fmt.Sprintf("%s:%d:%d", place, e.Line, e.Column)
		}
		parts = append(parts, place)
	} else {
		parts = append(parts, "error")
	}
	for _, part := range []string{e.Document, e.Field, e.Message} {
		if part != "" {
			parts = append(parts, Escape(part))
		}
	}
	return strings.Join(parts, ": ")
}

// Summary counts how the documents of an apply ended.
func Summary(r *report.Report) string {
	counts := count(r)
	text := fmt.Sprintf("%s: %s: %d changed, %d unchanged, %d deferred", r.Outcome, documents(len(r.Documents)),
		counts[report.Changed], counts[report.Unchanged], counts[report.Deferred])
	for _, o := range []report.Outcome{report.NotApplicable, report.RebootRequired, report.Failed, report.Skipped} {
		if counts[o] > 0 {
			text += fmt.Sprintf(", %d %s", counts[o], outcomeWord(o))
		}
	}
	return text
}

// PlanSummary counts what the documents of a plan would do.
func PlanSummary(r *report.Report) string {
	counts := count(r)
	text := fmt.Sprintf("%s: %d to change, %d unchanged, %d deferred", documents(len(r.Documents)),
		counts[report.Changed], counts[report.Unchanged], counts[report.Deferred])
	if n := counts[""]; n > 0 {
		text += fmt.Sprintf(", %d pending", n)
	}
	for _, o := range []report.Outcome{report.NotApplicable, report.Failed, report.Skipped} {
		if counts[o] > 0 {
			text += fmt.Sprintf(", %d %s", counts[o], outcomeWord(o))
		}
	}
	return text
}

func count(r *report.Report) map[report.Outcome]int {
	out := map[report.Outcome]int{}
	for _, d := range r.Documents {
		out[d.Outcome]++
	}
	return out
}

func documents(n int) string {
	if n == 1 {
		return "1 document"
	}
	return fmt.Sprintf("%d documents", n)
}

func outcomeWord(o report.Outcome) string {
	return map[report.Outcome]string{
		report.NotApplicable: "not applicable", report.RebootRequired: "waiting for a reboot",
		report.Failed: "failed", report.Skipped: "skipped",
	}[o]
}

func changeWord(o report.Outcome) string {
	switch o {
	case report.Changed:
		return "done"
	case report.Interrupted:
		return "interrupted"
	default:
		return "failed"
	}
}

func deferredWhy(d *report.Document) string {
	if d.Reason == report.ReasonPhase {
		return "its phase was not picked"
	}
	return "what is left needs the live machine"
}

func name(d *report.Document) string { return Escape(d.Kind) + "/" + Escape(d.Name) }

func by(d *report.Document) string {
	if d.Provider == "" {
		return ""
	}
	return " (" + Escape(d.Provider) + ")"
}

func duration(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

// ValidSummary says that a stream has no configuration errors.
func ValidSummary(r *report.Report) string {
	return documents(len(r.Documents)) + ": no configuration errors"
}
