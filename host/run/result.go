package run

import (
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// The budget of what a plugin says: a document's part of a report or of an output, and a whole report, in bytes.
const (
	documentBudget = 1 << 20
	reportBudget   = 4 << 20
)

// result is what has come of a document so far. Its methods return a new value.
type result struct {
	by       *candidate // nil when no plugin was chosen
	settled  bool       // outcome is final
	outcome  report.Outcome
	reason   string
	changes  []report.Change
	warnings []string
	problems problems // why it failed
	took     time.Duration
	size     int // bytes of changes and warnings
	omitted  int // changes and warnings beyond the budget
}

func settled(o report.Outcome, reason string) result {
	return result{settled: true, outcome: o, reason: reason}
}

func failed(p problems) result {
	return result{settled: true, outcome: report.Failed, problems: p}
}

// with adds what planning found out to the result of a document that failed.
func (r result) with(p planned) result {
	r.by = p.by
	for _, w := range p.plan.Warnings {
		r = r.warn(warningText(w))
	}
	return r
}

// end settles a result.
func (r result) end(o report.Outcome, reason string) result {
	r.settled, r.outcome, r.reason = true, o, reason
	return r
}

// fail settles a result that failed.
func (r result) fail(p problems) result {
	r = r.end(report.Failed, "")
	r.problems = p
	return r
}

// add appends a change, or replaces the one of the same ID that did not come to its end: an earlier try began it.
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

// finish records how a change ended.
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

// warn keeps a warning, once: Plan and Apply both send it.
func (r result) warn(text string) result {
	switch {
	case slices.Contains(r.warnings, text):
	case r.size+len(text) > documentBudget:
		r.omitted++
	default:
		r.size += len(text)
		r.warnings = append(slices.Clone(r.warnings), text)
	}
	return r
}

// changed says whether something was changed, or may have been.
func (r result) changed() bool {
	return slices.ContainsFunc(r.changes, func(c report.Change) bool { return c.Outcome != report.Deferred })
}

// withinBudget leaves out diffs, and then whole changes, that are too large for one document, and counts them.
func withinBudget(changes []pluginv1.Change) (shown []pluginv1.Change, omitted int) {
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
