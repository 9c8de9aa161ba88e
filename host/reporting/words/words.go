package words

import (
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/report"
)

// Name returns KIND/NAME.
func Name(d *report.Document) string { return Escape(d.Kind) + "/" + Escape(d.Name) }

// RunWord returns the outcome of a run as shown to people.
func RunWord(o report.Outcome) string {
	if o == report.RunRebootRequired {
		return "Reboot required"
	}
	return Escape(string(o))
}

// OutcomeWord returns the outcome of a document or a change as shown to people.
func OutcomeWord(o report.Outcome) string {
	switch o {
	case report.NotApplicable:
		return "not applicable"
	case report.RebootRequired:
		return "reboot needed"
	default:
		return Escape(strings.ToLower(string(o)))
	}
}

// TimeFormat is how a time is shown to people, with its zone.
const TimeFormat = "2006-01-02 15:04:05 MST"

// Took returns how long a run has lasted: its stages, or in a report without them the time between its start and its end, 0 if
// that is unknown because the run has set the clock or has not ended.
func Took(r *report.Report) time.Duration {
	if len(r.Stages) == 0 {
		if r.FinishedAt.IsZero() {
			return 0
		}
		return max(0, r.FinishedAt.Sub(r.StartedAt))
	}
	var ms int64
	for _, s := range r.Stages {
		ms += s.DurationMs
	}
	return time.Duration(ms) * time.Millisecond
}

// Duration rounds to the precision that a reader needs.
func Duration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < time.Millisecond:
		return "under 1ms"
	case d >= time.Minute:
		d = d.Round(time.Second)
	case d >= 10*time.Second:
		d = d.Round(100 * time.Millisecond)
	}
	return Brief(d)
}

// Brief omits trailing zeros: 1h0m0s becomes 1h.
func Brief(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
