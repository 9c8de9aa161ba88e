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
		name := r.Host.Hostname + "\x00" + r.StreamDigest
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
