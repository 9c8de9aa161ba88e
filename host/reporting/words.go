package reporting

import (
	"strings"
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

// ending returns a document's outcome, and its duration and reason.
func ending(d *report.Document) (word, rest string) {
	if d.DurationMs > 0 || d.Outcome == report.Changed || d.Outcome == report.Unchanged {
		rest = " (" + duration(d.DurationMs) + ")"
	}
	return DocumentWord(d), rest + reason(d)
}

// DocumentWord returns the outcome of a document as shown to people.
func DocumentWord(d *report.Document) string {
	if d.Reason == report.ReasonResolved {
		return d.Reason
	}
	return outcomeWord(d.Outcome)
}

// reason returns why a document was not applied, unless its error explains it.
func reason(d *report.Document) string {
	switch d.Outcome {
	case report.Deferred:
		if d.Reason == report.ReasonPhase {
			return ": its phase is not selected"
		}
		return ": the remaining changes need the live machine"
	case report.NotApplicable:
		return ": metadata.when does not match this machine"
	case report.Skipped:
		return ": the run ended before it"
	default:
		return ""
	}
}

func runWord(o report.Outcome) string {
	if o == report.RunRebootRequired {
		return "Reboot required"
	}
	return Escape(string(o))
}

func outcomeWord(o report.Outcome) string {
	switch o {
	case report.NotApplicable:
		return "not applicable"
	case report.RebootRequired:
		return "reboot needed"
	default:
		return Escape(strings.ToLower(string(o)))
	}
}

func changeWord(o report.Outcome) string {
	switch o {
	case report.Changed:
		return "done"
	case report.Interrupted, report.Deferred:
		return outcomeWord(o)
	default:
		return "failed"
	}
}

// outcomeStyle returns the style of a run's, a document's or a change's outcome.
func outcomeStyle(o report.Outcome) style {
	switch o {
	case report.Changed, report.RunSucceeded:
		return green
	case report.Deferred, report.RebootRequired, report.Interrupted:
		return yellow
	case report.Failed, report.RunInvalid:
		return alarm
	case report.RunRunning:
		return cyan
	default:
		return plain
	}
}

// duration rounds to the precision that a reader needs.
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
	return brief(d)
}

// brief omits trailing zeros: 1h0m0s becomes 1h.
func brief(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
