package reporting

import (
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting/words"
)

func by(d *report.Document) string {
	if d.Provider == "" {
		return ""
	}
	return " (" + words.Escape(d.Provider) + ")"
}

// ending returns a document's outcome, and its duration and reason.
func ending(d *report.Document) (word, rest string) {
	if d.DurationMs > 0 || d.Outcome == report.Changed || d.Outcome == report.Unchanged {
		rest = " (" + words.Duration(d.DurationMs) + ")"
	}
	return DocumentWord(d), rest + reason(d)
}

// DocumentWord returns the outcome of a document as shown to people.
func DocumentWord(d *report.Document) string {
	if d.Reason == report.ReasonResolved {
		return d.Reason
	}
	return words.OutcomeWord(d.Outcome)
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

func changeWord(o report.Outcome) string {
	switch o {
	case report.Changed:
		return "done"
	case report.Interrupted, report.Deferred:
		return words.OutcomeWord(o)
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
