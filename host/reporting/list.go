package reporting

import (
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run"
)

// mostChanges is how many changes of a document are listed below it; of more, the last.
const mostChanges = 10

// list is what the live view knows of a run. It is a function of the events: it reads no clock and keeps nothing that
// an event points to, because the run goes on changing that.
type list struct {
	entries  []entry
	place    map[int]int // in entries, by the document's index in the stream
	next     int         // the first entry whose turn has not come
	planned  int
	counts   map[report.Outcome]int
	finished int
	work     *work // the document at work
	begun    time.Time
	since    time.Time // when the planning of the next document began
	applying bool
	stopping bool
	over     bool
}

// entry is a document that waits.
type entry struct{ label, provider, note string }

func (e entry) String() string { return e.label + e.provider }

// work is what is done for one document.
type work struct {
	at    int
	since time.Time
	open  []step // begun and not ended
	ended []row  // the last of them
	more  int    // ended before those
	word  row    // what the plugin said last
}

type step struct {
	id    string
	since time.Time
	row   row
}

// take takes an event, and returns the rows that it leaves for good. The texts of the run's end are not among them.
func (l *list) take(e run.Event) []row {
	if e.Document != nil {
		if _, known := l.place[e.Document.Index]; !known {
			return nil // a list that lacks a line is no reason to stop a run
		}
	}
	switch e.Type {
	case run.EventRunStarted:
		l.start(e)
	case run.EventDocumentPlanned:
		return l.plan(e)
	case run.EventDocumentStarted:
		l.applying, l.next = true, l.at(e.Document)+1
		l.work = &work{at: l.at(e.Document), since: e.Time}
		l.entries[l.work.at].provider = by(e.Document) // chosen since
	case run.EventChangeStarted, run.EventChangeFinished, run.EventProgress, run.EventRetry:
		if l.work != nil {
			l.work.take(e)
		}
	case run.EventWarning:
		return []row{warning(e.Document, e.Message)}
	case run.EventDocumentFinished:
		return l.finish(e.Document)
	case run.EventRunFinished:
		l.over, l.work = true, nil
	}
	return nil
}

func (l *list) start(e run.Event) {
	l.begun, l.since = e.Time, e.Time
	l.counts, l.place = map[report.Outcome]int{}, map[int]int{}
	for i := range e.Report.Documents {
		d := &e.Report.Documents[i]
		l.place[d.Index] = i
		l.entries = append(l.entries, entry{label: name(d), provider: by(d)})
	}
}

// at is the place of a document.
func (l *list) at(d *report.Document) int { return l.place[d.Index] }

// plan: the planning of the next document has begun. A plan's warnings are told again by nobody.
func (l *list) plan(e run.Event) []row {
	at := l.at(e.Document)
	l.planned, l.next, l.since = l.planned+1, at+1, e.Time
	l.entries[at].provider = by(e.Document)
	switch n := len(e.Planned); {
	case e.Pending != "":
		l.entries[at].note = ": cannot be decided yet"
	case n == 0:
		l.entries[at].note = ": nothing to change"
	default:
		l.entries[at].note = ": " + plural(n, "change")
	}
	var out []row
	for _, w := range e.Document.Warnings {
		out = append(out, warning(e.Document, w))
	}
	return out
}

// take takes what happens to the document at work.
func (w *work) take(e run.Event) {
	w.word = row{}
	switch e.Type {
	case run.EventChangeStarted:
		w.open = append(w.open, step{
			id: e.Change.ID, since: e.Time, row: row{state: "doing", style: cyan, text: shown(e.Change.Summary), inner: true},
		})
	case run.EventChangeFinished:
		w.open = slices.DeleteFunc(w.open, func(s step) bool { return s.id == e.Result.ID })
		if w.ended = append(w.ended, changed(*e.Result)); len(w.ended) > mostChanges {
			w.ended, w.more = slices.Delete(w.ended, 0, 1), w.more+1
		}
	case run.EventProgress:
		w.word = row{state: "progress", style: cyan, text: shown(e.Message), inner: true}
	case run.EventRetry:
		w.word = row{state: "retry", style: yellow, text: shown(e.Message), inner: true}
	default:
	}
}

// finish settles a document.
func (l *list) finish(d *report.Document) []row {
	l.counts[d.Outcome]++
	l.finished++
	l.applying, l.work, l.next = true, nil, l.at(d)+1
	out := []row{finished(d)}
	changes := d.Changes
	if d.Outcome == report.Unchanged {
		changes = nil
	}
	if more := len(changes) - mostChanges; more > 1 {
		changes = changes[more:]
		out = append(out, before(more))
	}
	for _, c := range changes {
		out = append(out, changed(c))
	}
	return out
}

// finished is how a document ended.
func finished(d *report.Document) row {
	out := row{state: outcomeWord(d.Outcome), style: outcomeStyle(d.Outcome), text: name(d) + by(d) + because(d)}
	if d.DurationMs > 0 || d.Outcome == report.Changed || d.Outcome == report.Unchanged {
		out.took = took(time.Duration(d.DurationMs)*time.Millisecond, false)
	}
	return out
}

// changed is how a change ended.
func changed(c report.Change) row {
	out := row{state: changeWord(c.Outcome), style: changeStyle(c.Outcome), text: shown(c.Summary), inner: true}
	if c.Outcome != report.Deferred {
		out.took = took(time.Duration(c.DurationMs)*time.Millisecond, false)
	}
	return out
}

func warning(d *report.Document, text string) row {
	return row{state: "warning", style: yellow, text: name(d) + ": " + shown(text), whole: true}
}
