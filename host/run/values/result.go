package values

import (
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// The limits of a plugin's text in a document's part of a report or of the output, and in a whole report, in bytes.
const (
	DocumentBudget = 1 << 20
	ReportBudget   = 4 << 20
)

// Result is the outcome of a document so far. Its methods return a new value.
type Result struct {
	By       *Candidate // nil if no plugin was chosen
	Settled  bool       // outcome is final
	Outcome  report.Outcome
	Reason   string
	Changes  []report.Change
	Warnings []string
	Problems Problems // of a failed document
	Waits    []report.Wait
	Began    time.Time // as in the report; zero before its turn
	Took     time.Duration
	Size     int // bytes of changes, waits and warnings
	Omitted  int // changes, waits and warnings beyond the budget
}

// Source is the state of a document that is resolved instead of applied.
type Source struct {
	Result  Result          // settled when the document is resolved or wrong
	Pending *pluginv1.Error // not reachable yet: it is resolved at its turn
}

// Failed returns the result of a document with these errors.
func Failed(p Problems) Result { return Result{}.Fail(p) }

// End settles a result.
func (r Result) End(o report.Outcome, reason string) Result {
	r.Settled, r.Outcome, r.Reason = true, o, reason
	return r
}

// Fail settles a failed result.
func (r Result) Fail(p Problems) Result {
	r.Problems = p
	return r.End(report.Failed, "")
}

// Add appends a change. It replaces an incomplete change of the same ID, which an earlier try started.
func (r Result) Add(c report.Change) Result {
	r.Changes = slices.DeleteFunc(slices.Clone(r.Changes), func(old report.Change) bool {
		return old.ID == c.ID && old.Outcome != report.Changed
	})
	bytes := len(c.ID) + len(c.Summary)
	if r.Size+bytes > DocumentBudget {
		r.Omitted++
		return r
	}
	r.Size += bytes
	r.Changes = append(r.Changes, c)
	return r
}

// Finish sets the outcome of a started change.
func (r Result) Finish(id string, o report.Outcome, took time.Duration) (Result, report.Change) {
	r.Changes = slices.Clone(r.Changes)
	for i := range slices.Backward(r.Changes) {
		if r.Changes[i].ID == id {
			r.Changes[i].Outcome, r.Changes[i].DurationMs = o, took.Milliseconds()
			return r, r.Changes[i]
		}
	}
	return r, report.Change{ID: id, Outcome: o, DurationMs: took.Milliseconds()}
}

// Wait adds a wait, and the time since the last one if that has the same reason.
func (r Result) Wait(reason string, began time.Time, took time.Duration) Result {
	r.Waits = slices.Clone(r.Waits)
	if last := len(r.Waits) - 1; last >= 0 && r.Waits[last].Reason == reason {
		r.Waits[last].DurationMs = began.Add(took).Sub(r.Waits[last].StartedAt).Milliseconds()
		return r
	}
	if r.Size+len(reason) > DocumentBudget {
		r.Omitted++
		return r
	}
	r.Size += len(reason)
	r.Waits = append(r.Waits, report.Wait{Reason: reason, StartedAt: began, DurationMs: took.Milliseconds()})
	return r
}

// DeferLive adds changes that need the live machine, and settles the result as deferred to first boot.
func (r Result) DeferLive(changes []pluginv1.Change) Result {
	for _, c := range changes {
		r = r.Add(report.Change{ID: c.ID, Summary: c.Summary, Outcome: report.Deferred})
	}
	return r.End(report.Deferred, report.ReasonLive)
}

// Warn adds warnings. Plan and Apply can both send a warning; it is kept once.
func (r Result) Warn(warnings ...pluginv1.Warning) Result {
	for _, w := range warnings {
		switch text := WarningText(w); {
		case slices.Contains(r.Warnings, text):
		case r.Size+len(text) > DocumentBudget:
			r.Omitted++
		default:
			r.Size += len(text)
			r.Warnings = append(slices.Clone(r.Warnings), text)
		}
	}
	return r
}

// Changed reports whether the document changed the machine, or may have.
func (r Result) Changed() bool {
	return slices.ContainsFunc(r.Changes, func(c report.Change) bool { return c.Outcome != report.Deferred })
}
