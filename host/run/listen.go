package run

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// listener turns the events of one Apply into a result, and passes them on to the observer within a budget.
type listener struct {
	run      *runner
	doc      doc
	result   result
	begun    map[string]time.Time
	shown    int             // bytes passed on
	hidden   int             // events that were not
	unkept   chan<- struct{} // the watcher's
	stateErr error           // an *ending: the first time that the report or a requested reboot could not be kept
}

// take implements the callback of Apply.
func (l *listener) take(event pluginv1.Event) error {
	switch e := event.(type) {
	case pluginv1.Started:
		l.started(e.Change)
	case pluginv1.Changed:
		l.ended(e.ID, report.Changed)
	case pluginv1.Progress:
		l.request(e.Reboot)
		if e.Message != "" {
			l.emit(Event{Type: EventProgress, Message: e.Message}, len(e.Message))
		}
	case pluginv1.Warning:
		text := warningText(e)
		if before := len(l.result.warnings); before < len(l.warn(text)) {
			l.emit(Event{Type: EventWarning, Message: text}, len(text))
		}
	}
	return nil
}

func (l *listener) warn(text string) []string {
	l.result = l.result.warn(text)
	return l.result.warnings
}

// started and ended rely on the client of pluginv1 for the order of events.
func (l *listener) started(c pluginv1.Change) {
	l.begun[c.ID] = time.Now()
	l.run.changed = true
	l.result = l.result.add(report.Change{ID: c.ID, Summary: c.Summary, Outcome: report.Interrupted})
	l.request(c.Reboot)
	l.emit(Event{Type: EventChangeStarted, Change: &c}, len(c.Summary)+len(c.Diff))
	// Before it is done: a report that survives a crash names the change in hand. When it cannot be kept, that change is
	// finished and no other is begun.
	l.keep(l.run.recordWith(l.doc, l.result))
}

func (l *listener) ended(id string, outcome report.Outcome) {
	var done report.Change
	l.result, done = l.result.finish(id, outcome, time.Since(l.begun[id]))
	delete(l.begun, id)
	l.emit(Event{Type: EventChangeFinished, Result: &done}, len(done.Summary))
}

// abandon settles the changes that were begun and not done, and returns the result. failed says that the plugin has
// reported their failure; else their end is not known.
func (l *listener) abandon(failed bool) result {
	outcome := report.Interrupted
	if failed {
		outcome = report.Failed
	}
	for _, id := range slices.Sorted(maps.Keys(l.begun)) {
		l.ended(id, outcome)
	}
	if l.hidden > 0 {
		text := fmt.Sprintf("the plugin sent more than is shown: %d events are left out", l.hidden)
		l.warn(text)
		d := fold(l.doc, l.result)
		l.run.emit(Event{Type: EventWarning, Document: &d, Message: text})
	}
	return l.result
}

// request makes a requested reboot durable.
func (l *listener) request(when pluginv1.Reboot) {
	l.keep(l.run.requestReboot(l.doc.label(), when, true))
}

func (l *listener) keep(err error) {
	if err == nil || l.stateErr != nil {
		return
	}
	l.stateErr = err
	select {
	case l.unkept <- struct{}{}:
	default: // the watcher has it
	}
}

// emit passes an event on, unless the document has used up what it may say.
func (l *listener) emit(e Event, bytes int) {
	if l.shown += bytes; l.shown > documentBudget {
		l.hidden++
		return
	}
	d := fold(l.doc, l.result)
	e.Document = &d
	l.run.emit(e)
}
