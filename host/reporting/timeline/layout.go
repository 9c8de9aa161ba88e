package timeline

import (
	"cmp"
	"slices"
	"strings"
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

// note returns the outcome of a row and how long it took.
func (r Row) note() string {
	if r.Depth == 0 {
		return r.Note
	}
	if r.took == 0 {
		return r.Note
	}
	return strings.TrimSpace(r.Note + " " + duration(r.took))
}

func duration(d time.Duration) string { return words.Duration(d.Milliseconds()) }

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
