package words

import (
	"fmt"
	"strings"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/resolve"
)

// Headline returns the first line of a status: outcome, document, phase, cause, remedy, safe to retry.
func Headline(r report.Report, alive bool) string {
	switch {
	case r.Outcome == report.RunRunning && alive:
		return "Running: " + progress(r)
	case r.Outcome == report.RunRunning:
		return killed(r)
	case r.Outcome == report.RunSucceeded:
		return Summary(&r)
	}
	all := r.Errors
	if len(all) == 0 {
		all = []report.Error{{Message: "no cause was recorded"}}
	}
	first := all[0]
	text := RunWord(r.Outcome) + where(first.Document) + " while " + stage(r, first)
	if first.Code != report.CodeInterrupted { // the outcome repeats it
		text += ": " + cause(first)
	}
	if more := len(all) - 1; more > 0 {
		text += " (and " + Counted(more, "more error") + ")"
	}
	switch {
	case first.Hint != "":
		text += "; remedy: " + sentence(first.Hint)
	case first.Code == pluginv1.CodeInvalidConfig.String():
		text += "; remedy: correct the stream"
	}
	return text + retry(r, first.Hint)
}

func where(document string) string {
	if document == "" {
		return ""
	}
	return " at " + Escape(document)
}

func cause(e report.Error) string {
	var parts []string
	if e.File != "" {
		parts = append(parts, Location(e))
	}
	if e.Field != "" {
		parts = append(parts, Escape(e.Field))
	}
	return strings.Join(append(parts, sentence(e.Message)), ": ")
}

// sentence removes the final punctuation of a text that is continued.
func sentence(text string) string { return strings.TrimRight(Escape(text), ".; ") }

// retry returns whether running again is safe, unless the hint contains it.
func retry(r report.Report, hint string) string {
	safe := "; running again is safe"
	if strings.Contains(hint, "running again is safe") {
		safe = ""
	}
	switch r.Outcome {
	case report.RunInvalid:
		return "; nothing was changed" + safe
	case report.RunRebootRequired:
		return "; running again is safe after the reboot"
	default:
		return safe
	}
}

// killed returns the headline of a run that is over although its report has Running.
func killed(r report.Report) string {
	text, change := "Interrupted while "+progress(r), ""
	if i, _ := Current(r); i >= 0 {
		d := &r.Documents[i]
		text = "Interrupted" + where(d.Kind+"/"+d.Name) + " while applying"
		if c := begunChange(d); c != nil {
			change = ", during this change: " + sentence(c.Summary)
		}
	}
	return text + ": the run was killed, the machine went down, or its report could not be written" + change +
		"; remedy: run the same command again; running again is safe"
}

// progress returns the state of an unfinished run.
func progress(r report.Report) string {
	i, begun := Current(r)
	switch {
	case len(r.Documents) == 0:
		return "reading the stream"
	case !begun:
		return "planning " + Documents(len(r.Documents))
	case i < 0:
		return "finishing"
	}
	text := fmt.Sprintf("applying %s (document %d of %d)", Name(&r.Documents[i]), i+1, len(r.Documents))
	if c := begunChange(&r.Documents[i]); c != nil {
		text += ": doing: " + Escape(c.Summary)
	}
	return text
}

// Current returns the index of the document that is being applied, or -1. begun means that the run has begun to apply.
func Current(r report.Report) (i int, begun bool) {
	for i := range r.Documents {
		d := &r.Documents[i]
		begun = begun || begins(d)
		if begun && d.Outcome == "" {
			return i, true
		}
	}
	return -1, begun
}

// begins reports whether the run has begun to apply a document. One that is resolved has taken its time before all others are planned.
func begins(d *report.Document) bool {
	return (len(d.Changes) > 0 || d.DurationMs > 0) && !resolve.IsReference(d.APIVersion, d.Kind)
}

// begunChange returns the change that has begun and not ended, or nil.
func begunChange(d *report.Document) *report.Change {
	for k := range d.Changes {
		if d.Changes[k].Outcome == report.Interrupted {
			return &d.Changes[k]
		}
	}
	return nil
}

// stage returns the stage of the run in which an error occurred.
func stage(r report.Report, e report.Error) string {
	bound := false
	for i := range r.Documents {
		d := &r.Documents[i]
		if begins(d) {
			return "applying"
		}
		bound = bound || d.Plugin != nil && !resolve.IsReference(d.APIVersion, d.Kind)
	}
	switch {
	case len(r.Documents) == 0, !bound && e.Code == pluginv1.CodeInvalidConfig.String():
		return "reading the stream"
	case e.Code == report.CodeNoPlugin, e.Code == report.CodeUntrusted, e.Code == report.CodeCrashed && !bound:
		return "starting the plugins"
	default:
		return "planning"
	}
}

// Location returns FILE:LINE:COLUMN, as far as known.
func Location(e report.Error) string {
	text := Escape(e.File)
	if e.Line > 0 {
		text += fmt.Sprintf(":%d", e.Line)
		if e.Column > 0 {
			text += fmt.Sprintf(":%d", e.Column)
		}
	}
	return text
}
