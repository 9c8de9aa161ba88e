// Package timeline shows when a run did what: the reports of runs become rows of bars on one time axis, which are rendered as text
// and as SVG.
package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting/words"
)

// Kind is what a bar shows.
type Kind string

// The kinds of bars.
const (
	Reboot    Kind = "reboot"
	Boot      Kind = "boot"
	Prepare   Kind = "prepare"
	Resolve   Kind = "resolve"
	Start     Kind = "start plugins"
	Plan      Kind = "plan"
	Apply     Kind = "apply"
	Finish    Kind = "finish"
	Wait      Kind = "wait"
	Changed   Kind = "changed"
	Unchanged Kind = "unchanged"
	Failed    Kind = "failed"
	Cut       Kind = "interrupted"
	Running   Kind = "running"
)

// Layout is a picture: rows of bars on one axis.
type Layout struct {
	Title  string // the first line of status, or the number of runs
	Begin  time.Time
	Length time.Duration // of the axis, above zero
	Rows   []Row
	// Hidden is the number of rows beyond maxRows, and Longest the longest time of one of them.
	Hidden  int
	Longest time.Duration
}

// Row is a machine, a document or a change.
type Row struct {
	Depth int // 0: a machine, 1: a document, 2: a change or a wait
	Label string
	Note  string
	Kind  Kind // the outcome; empty for none
	Bars  []Bar

	took time.Duration
}

// Bar is a part of a row.
type Bar struct {
	Kind       Kind
	Text       string
	Start, End time.Duration // from Layout.Begin
}

// The bounds of a picture.
const (
	maxRows = 500
	// finest is the part of the axis below which a change has no row, and a document no bar in the row of its machine.
	finest = 400
	// longest is the longest time of a picture.
	longest = 366 * 24 * time.Hour
)

// Of returns the picture of one stream on one machine: its runs, oldest first, with a row for each document and for each change
// and each wait that can be seen. now, if not zero, is the time up to which the last run has lasted.
func Of(runs []report.Report, now time.Time) Layout {
	if len(runs) == 0 {
		return Layout{Length: time.Millisecond}
	}
	last := runs[len(runs)-1]
	a := axisOf(runs, now)
	out := Layout{Title: words.Headline(last, !now.IsZero()), Begin: a.begin, Length: a.length}
	machine := Row{Label: cmp.Or(words.Escape(last.Host.Hostname), "the machine"), Note: duration(a.length)}
	documents := map[string]int{} // the row by the name of the document
	var rows [][]Row              // of each document
	for i := range runs {
		machine.Bars = append(machine.Bars, a.machine(runs, i)...)
		bars := a.documents(runs, i)
		for k := range runs[i].Documents {
			d := &runs[i].Documents[k]
			name := d.ID + " " + d.Kind + "/" + d.Name
			at, known := documents[name]
			if !known {
				at = len(rows)
				documents[name] = at
				rows = append(rows, []Row{{Depth: 1}})
			}
			rows[at] = a.add(rows[at], runs, i, d, bars[k])
		}
	}
	for _, parts := range rows {
		slices.SortStableFunc(parts[1:], func(x, y Row) int { return cmp.Compare(first(x), first(y)) })
	}
	out.Rows = append([]Row{machine}, slices.Concat(rows...)...)
	out.limit()
	return out
}

// Several returns the picture of runs on several machines: a row for each stream of each machine, on one axis.
func Several(reports []report.Report) Layout {
	groups := map[string][]report.Report{}
	var names []string
	for _, r := range reports {
		name := r.Host.Hostname + "\x00" + r.Generation
		if len(groups[name]) == 0 {
			names = append(names, name)
		}
		groups[name] = append(groups[name], r)
	}
	a := axisOf(reports, time.Time{})
	out := Layout{Title: words.Counted(len(reports), "run") + " of " + words.Counted(len(names), "machine"), Begin: a.begin, Length: a.length}
	for _, name := range names {
		runs := groups[name]
		slices.SortStableFunc(runs, func(x, y report.Report) int { return begin(&x).Compare(begin(&y)) })
		last := runs[len(runs)-1]
		row := Row{Label: cmp.Or(words.Escape(last.Host.Hostname), "no name"), Note: words.Headline(last, false), Kind: ofRun(last.Outcome)}
		for i := range runs {
			row.Bars = append(row.Bars, a.machine(runs, i)...)
			for _, bars := range a.documents(runs, i) {
				row.Bars = append(row.Bars, a.visible(bars)...)
			}
		}
		out.Rows = append(out.Rows, row)
	}
	slices.SortStableFunc(out.Rows, func(x, y Row) int { return cmp.Compare(first(x), first(y)) })
	out.limit()
	return out
}

func first(r Row) time.Duration {
	if len(r.Bars) == 0 {
		return 0
	}
	return r.Bars[0].Start
}

// limit leaves out the rows that took least, if there are too many.
func (l *Layout) limit() {
	if len(l.Rows) <= maxRows {
		return
	}
	weight := func(r Row) time.Duration {
		if r.Depth == 0 || r.Kind == Failed || r.Kind == Cut || r.Kind == Running {
			return longest
		}
		return r.took
	}
	order := make([]int, len(l.Rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weight(l.Rows[b]), weight(l.Rows[a])) })
	l.Hidden = len(order) - maxRows
	l.Longest = l.Rows[order[maxRows]].took
	kept := order[:maxRows]
	slices.Sort(kept)
	rows := make([]Row, len(kept))
	for i, at := range kept {
		rows[i] = l.Rows[at]
	}
	l.Rows = rows
}

// ofRun returns the kind for the outcome of a run.
func ofRun(o report.Outcome) Kind {
	switch o {
	case report.RunSucceeded:
		return Changed
	case report.RunFailed, report.RunInvalid:
		return Failed
	case report.RunInterrupted, report.RunRunning, report.RunRebootRequired:
		return Cut
	default:
		return ""
	}
}

// turn returns the kind for a document. One whose other changes wait for the first boot has changed something.
func turn(d *report.Document) Kind {
	changed := func(c report.Change) bool { return c.Outcome == report.Changed }
	if d.Outcome == report.Deferred && slices.ContainsFunc(d.Changes, changed) {
		return Changed
	}
	return outcome(d.Outcome)
}

// outcome returns the kind for the outcome of a document or a change.
func outcome(o report.Outcome) Kind {
	switch o {
	case report.Changed, report.RebootRequired:
		return Changed
	case report.Failed:
		return Failed
	case report.Interrupted:
		return Cut
	default:
		return Unchanged
	}
}
