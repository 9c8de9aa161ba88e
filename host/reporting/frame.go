package reporting

import (
	"fmt"
	"time"

	"github.com/machineadm/machineadm/contract/report"
)

// The live region leaves the better part of a terminal to what is there for good.
const (
	mostRows    = 16
	fewestRows  = 5
	mostWaiting = 3
)

// frame is the live region: lines that fit a terminal of this size, and fewer than it has.
func frame(l *list, width, height int, now time.Time) []line {
	room := min(height-1, max(fewestRows, height/2), mostRows)
	if l.begun.IsZero() || l.over || room < 1 {
		return nil
	}
	var out []line
	for _, r := range l.rows(max(1, room-1), now) {
		out = append(out, r.lines(width)...)
	}
	if room > 1 {
		out = append(out, line{{l.footer(width, now), bold}}.cut(width))
	}
	return out
}

// footer says how far the run is.
func (l *list) footer(width int, now time.Time) string {
	elapsed := took(now.Sub(l.begun), true)
	if elapsed != "" {
		elapsed = ", " + elapsed
	}
	all := documents(len(l.entries))
	switch {
	case width < tookFrom && l.applying:
		return fmt.Sprintf("%d/%d done%s", l.finished, len(l.entries), elapsed)
	case width < tookFrom:
		return fmt.Sprintf("%d/%d planned%s", l.planned, len(l.entries), elapsed)
	case l.stopping:
		return "stopping when the change in hand is done" + elapsed + "; interrupt again to stop at once"
	case !l.applying:
		return fmt.Sprintf("%d of %s planned%s", l.planned, all, elapsed)
	}
	text := fmt.Sprintf("%d of %s done%s", l.finished, all, elapsed)
	separator := ": "
	for _, o := range []report.Outcome{report.Changed, report.Unchanged, report.Deferred, report.NotApplicable, report.Failed} {
		if l.counts[o] > 0 {
			text += fmt.Sprintf("%s%d %s", separator, l.counts[o], outcomeWord(o))
			separator = ", "
		}
	}
	return text
}

// rows are the document at work, what is done for it, and the next that wait: as many as there is room for, the most
// telling first.
func (l *list) rows(room int, now time.Time) []row {
	var head, going, ended []row
	more := 0
	switch w := l.work; {
	case w != nil:
		head = []row{{state: "at work", style: bold, took: took(now.Sub(w.since), true), text: l.entries[w.at].String()}}
		going, ended, more = w.going(now), w.ended, w.more
	case !l.applying && l.next < len(l.entries):
		head = []row{{state: "planning", style: bold, took: took(now.Sub(l.since), true), text: l.entries[l.next].String()}}
	}
	room -= len(head)
	going = going[max(0, len(going)-room):]
	room -= len(going)
	waiting := l.waiting(min(room, mostWaiting+1))
	room -= len(waiting)
	if len(ended) > room || more > 0 {
		kept := min(len(ended), max(0, room-1))
		more += len(ended) - kept
		ended = append([]row{before(more)}, ended[len(ended)-kept:]...)
		ended = ended[:min(len(ended), room)]
	}
	out := append(head, ended...)
	return append(append(out, going...), waiting...)
}

// before stands for changes that there is no room for.
func before(n int) row {
	return row{text: plural(n, "change") + " before these", inner: true, faint: true}
}

// going are the changes in hand, and the last word about them.
func (w *work) going(now time.Time) []row {
	var out []row
	for _, s := range w.open {
		s.row.took = took(now.Sub(s.since), true)
		out = append(out, s.row)
	}
	if w.word.state != "" {
		out = append(out, w.word)
	}
	return out
}

// waiting are the next documents, and how many come after them, in so many rows.
func (l *list) waiting(room int) []row {
	from := l.next
	if !l.applying {
		from++ // the one that is being planned
	}
	left := len(l.entries) - from
	if left < 1 || room < 1 {
		return nil
	}
	named := left
	if left > room {
		named = room - 1
	}
	var out []row
	for _, e := range l.entries[from : from+named] {
		out = append(out, row{state: "waiting", text: e.String() + e.note, faint: true})
	}
	if left > named {
		out = append(out, row{state: "waiting", text: plural(left-named, "more document"), faint: true})
	}
	return out
}
