package run

import (
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// The limits of a plugin's text in a document's part of a report or of the output, and in a whole report, in bytes.
const (
	documentBudget = 1 << 20
	reportBudget   = 4 << 20
)

// result is the outcome of a document so far. Its methods return a new value.
type result struct {
	by       *candidate // nil if no plugin was chosen
	settled  bool       // outcome is final
	outcome  report.Outcome
	reason   string
	changes  []report.Change
	warnings []string
	problems problems // of a failed document
	waits    []report.Wait
	began    time.Time // as in the report; zero before its turn
	took     time.Duration
	size     int // bytes of changes, waits and warnings
	omitted  int // changes, waits and warnings beyond the budget
}

// source is the state of a document that is resolved instead of applied.
type source struct {
	result  result          // settled when the document is resolved or wrong
	pending *pluginv1.Error // not reachable yet: it is resolved at its turn
}

func failed(p problems) result { return result{}.fail(p) }

// end settles a result.
func (r result) end(o report.Outcome, reason string) result {
	r.settled, r.outcome, r.reason = true, o, reason
	return r
}

// fail settles a failed result.
func (r result) fail(p problems) result {
	r.problems = p
	return r.end(report.Failed, "")
}

// add appends a change. It replaces an incomplete change of the same ID, which an earlier try started.
func (r result) add(c report.Change) result {
	r.changes = slices.DeleteFunc(slices.Clone(r.changes), func(old report.Change) bool {
		return old.ID == c.ID && old.Outcome != report.Changed
	})
	bytes := len(c.ID) + len(c.Summary)
	if r.size+bytes > documentBudget {
		r.omitted++
		return r
	}
	r.size += bytes
	r.changes = append(r.changes, c)
	return r
}

// finish sets the outcome of a started change.
func (r result) finish(id string, o report.Outcome, took time.Duration) (result, report.Change) {
	r.changes = slices.Clone(r.changes)
	for i := range slices.Backward(r.changes) {
		if r.changes[i].ID == id {
			r.changes[i].Outcome, r.changes[i].DurationMs = o, took.Milliseconds()
			return r, r.changes[i]
		}
	}
	return r, report.Change{ID: id, Outcome: o, DurationMs: took.Milliseconds()}
}

// wait adds a wait, and the time since the last one if that has the same reason.
func (r result) wait(reason string, began time.Time, took time.Duration) result {
	r.waits = slices.Clone(r.waits)
	if last := len(r.waits) - 1; last >= 0 && r.waits[last].Reason == reason {
		r.waits[last].DurationMs = began.Add(took).Sub(r.waits[last].StartedAt).Milliseconds()
		return r
	}
	if r.size+len(reason) > documentBudget {
		r.omitted++
		return r
	}
	r.size += len(reason)
	r.waits = append(r.waits, report.Wait{Reason: reason, StartedAt: began, DurationMs: took.Milliseconds()})
	return r
}

// deferLive adds changes that need the live machine, and settles the result as deferred to first boot.
func (r result) deferLive(changes []pluginv1.Change) result {
	for _, c := range changes {
		r = r.add(report.Change{ID: c.ID, Summary: c.Summary, Outcome: report.Deferred})
	}
	return r.end(report.Deferred, report.ReasonLive)
}

// warn adds warnings. Plan and Apply can both send a warning; it is kept once.
func (r result) warn(warnings ...pluginv1.Warning) result {
	for _, w := range warnings {
		switch text := warningText(w); {
		case slices.Contains(r.warnings, text):
		case r.size+len(text) > documentBudget:
			r.omitted++
		default:
			r.size += len(text)
			r.warnings = append(slices.Clone(r.warnings), text)
		}
	}
	return r
}

// changed reports whether the document changed the machine, or may have.
func (r result) changed() bool {
	return slices.ContainsFunc(r.changes, func(c report.Change) bool { return c.Outcome != report.Deferred })
}

// withinBudget omits diffs, and then whole changes, beyond the budget of a document, and counts them.
func withinBudget(changes []PlannedChange) (shown []PlannedChange, omitted int) {
	size := 0
	for _, c := range changes {
		size += len(c.ID) + len(c.Summary)
		if size > documentBudget {
			omitted++
			continue
		}
		if size+len(c.Diff) > documentBudget {
			c.Diff = ""
			omitted++
		}
		size += len(c.Diff)
		shown = append(shown, c)
	}
	return shown, omitted
}
