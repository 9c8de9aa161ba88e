package timeline

import (
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting/words"
)

// documents returns the bars of each document of a run: its plan, its turn, and the waits within. Plans follow each other in the
// order of the stream.
func (a axis) documents(runs []report.Report, i int) [][]Bar {
	r := &runs[i]
	planned := begin(r)
	for _, s := range r.Stages {
		if s.Name == report.StagePlan {
			break
		}
		planned = planned.Add(ms(s.DurationMs))
	}
	out := make([][]Bar, len(r.Documents))
	for k := range r.Documents {
		d := &r.Documents[k]
		name := d.Kind + "/" + d.Name
		if d.PlanMs > 0 {
			out[k] = append(out[k], a.bar(Plan, name, planned, ms(d.PlanMs)))
			planned = planned.Add(ms(d.PlanMs))
		}
		if d.StartedAt.IsZero() {
			continue
		}
		start := a.of(r, d.StartedAt)
		kind, length := turn(d), ms(d.DurationMs)
		if d.Outcome == "" {
			kind, length = a.unfinished(runs, i), a.end(runs, i).Sub(start)
		}
		out[k] = append(out[k], a.bar(kind, name, start, length))
		for _, w := range d.Waits {
			out[k] = append(out[k], a.bar(Wait, w.Reason, a.of(r, w.StartedAt), ms(w.DurationMs)))
		}
	}
	return out
}

// add adds a document of a run to its rows: the first is its own, the others are of its changes and waits.
func (a axis) add(rows []Row, runs []report.Report, i int, d *report.Document, bars []Bar) []Row {
	row := &rows[0]
	row.Label = words.Name(d)
	if d.Provider != "" {
		row.Label += " (" + words.Escape(d.Provider) + ")"
	}
	row.Bars = append(row.Bars, bars...)
	row.took += ms(d.DurationMs)
	kind, word := turn(d), words.OutcomeWord(d.Outcome)
	if d.Reason == report.ReasonResolved {
		word = d.Reason
	}
	if d.Outcome == "" {
		kind, word = "", "not reached"
		if !d.StartedAt.IsZero() {
			kind = a.unfinished(runs, i)
			word = string(kind)
		}
	}
	if kind != Unchanged || row.Kind == "" || row.Kind == Cut { // what an earlier run has changed is unchanged in the next one
		row.Kind, row.Note = kind, word
	}
	for _, c := range d.Changes {
		if c.StartedAt.IsZero() {
			continue
		}
		start, kind := a.of(&runs[i], c.StartedAt), outcome(c.Outcome)
		length := ms(c.DurationMs)
		if c.Outcome == report.Interrupted && d.Outcome == "" {
			kind, length = a.unfinished(runs, i), a.end(runs, i).Sub(start)
		}
		rows = a.part(rows, Row{Label: words.Escape(c.Summary), Kind: kind, took: length, Bars: []Bar{a.bar(kind, "", start, length)}})
	}
	for _, w := range d.Waits {
		length := ms(w.DurationMs)
		rows = a.part(rows, Row{
			Label: "waiting: " + words.Escape(w.Reason), Kind: Wait, took: length,
			Bars: []Bar{a.bar(Wait, w.Reason, a.of(&runs[i], w.StartedAt), length)},
		})
	}
	return rows
}

// part adds the row of a change or a wait, if it can be seen or has failed. Another try of the same is in the same row.
func (a axis) part(rows []Row, r Row) []Row {
	if r.took < a.length/finest && r.Kind != Failed && r.Kind != Cut {
		return rows
	}
	r.Depth = 2
	for i := range rows[1:] {
		if same := &rows[1+i]; same.Label == r.Label {
			same.Bars, same.Kind, same.took = append(same.Bars, r.Bars...), r.Kind, same.took+r.took
			return rows
		}
	}
	if len(rows) > maxRows {
		return rows // the picture shows no more
	}
	return append(rows, r)
}

// visible leaves out the bars that are too short to be seen beside others of the row, unless they show a failure.
func (a axis) visible(bars []Bar) []Bar {
	var out []Bar
	for _, b := range bars {
		if b.End-b.Start >= a.length/finest || b.Kind == Failed || b.Kind == Cut {
			out = append(out, b)
		}
	}
	return out
}
