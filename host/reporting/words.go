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

// ending is a document's outcome, and its duration and reason unless an error gives it.
func ending(d *report.Document) (word, rest string) {
	if d.DurationMs > 0 || d.Outcome == report.Changed || d.Outcome == report.Unchanged {
		rest = " (" + duration(d.DurationMs) + ")"
	}
	return outcomeWord(d.Outcome), rest + because(d)
}

// because says why a document was left as it is; empty when it was not, or when an error says it.
func because(d *report.Document) string {
	switch d.Outcome {
	case report.Deferred:
		if d.Reason == report.ReasonPhase {
			return ": this run leaves its phase out"
		}
		return ": what is left needs the live machine"
	case report.NotApplicable:
		return ": metadata.when does not match this machine"
	case report.Skipped:
		return ": the run ended before its turn"
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

func outcomeStyle(o report.Outcome) style {
	switch o {
	case report.Changed, report.RunSucceeded:
		return green
	case report.Deferred, report.RebootRequired, report.RunInterrupted: // a document or a run, they share the words
		return yellow
	case report.Failed, report.RunInvalid:
		return alarm
	case report.RunRunning:
		return cyan
	default:
		return plain
	}
}

func changeStyle(o report.Outcome) style {
	switch o {
	case report.Changed:
		return green
	case report.Deferred, report.Interrupted:
		return yellow
	default:
		return alarm
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
	return brief(d)
}

// brief leaves out the zeros at the end: 1h0m0s is 1h.
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
