package reporting

import (
	"time"

	"github.com/machineadm/machineadm/contract/report"
)

func name(d *report.Document) string { return Escape(d.Kind) + "/" + Escape(d.Name) }

func by(d *report.Document) string {
	if d.Provider == "" {
		return ""
	}
	return " (" + Escape(d.Provider) + ")"
}

// ending says how a document ended, and why if that is not in an error.
func ending(d *report.Document) string {
	text := outcomeWord(d.Outcome)
	switch d.Outcome {
	case report.Changed, report.Unchanged:
		text += " (" + duration(d.DurationMs) + ")"
	case report.Deferred:
		text += ": what is left needs the live machine"
		if d.Reason == report.ReasonPhase {
			text = outcomeWord(d.Outcome) + ": this run leaves its phase out"
		}
	case report.NotApplicable:
		text += ": metadata.when does not match this machine"
	case report.Skipped:
		text += ": the run ended before its turn"
	default:
	}
	return text
}

func runWord(o report.Outcome) string {
	if o == report.RunRebootRequired {
		return "Reboot required"
	}
	return Escape(string(o))
}

func outcomeWord(o report.Outcome) string {
	switch o {
	case report.Changed:
		return "changed"
	case report.Unchanged:
		return "unchanged"
	case report.Deferred:
		return "deferred"
	case report.NotApplicable:
		return "not applicable"
	case report.Failed:
		return "failed"
	case report.Skipped:
		return "skipped"
	case report.RebootRequired:
		return "reboot needed"
	default:
		return Escape(string(o))
	}
}

func changeWord(o report.Outcome) string {
	switch o {
	case report.Changed:
		return "done"
	case report.Interrupted:
		return "interrupted"
	case report.Deferred:
		return "deferred"
	default:
		return "failed"
	}
}

// duration is as exact as a person wants it.
func duration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Millisecond:
		return "under 1ms"
	case d >= time.Minute:
		d = d.Round(time.Second)
	case d >= 10*time.Second:
		d = d.Round(100 * time.Millisecond)
	}
	return d.String()
}
