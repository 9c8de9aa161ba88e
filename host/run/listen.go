package run

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run/values"
)

// listener adds the events of an Apply to a result, and passes them to the observer within a budget.
type listener struct {
	run     *runner
	doc     values.Doc
	result  values.Result
	mu      sync.Mutex // for beat, beside receive
	started map[string]started
	shown   int             // bytes passed on
	hidden  int             // events not passed on
	failure error           // an error of the run: the first report or requested reboot that could not be saved
	failed  chan<- struct{} // receives at the first failure
}

// started is a change that has begun and not ended.
type started struct {
	summary string
	at      time.Time
	beats   time.Duration // the number of change-running events
}

// beatEvery is the time of a change after which an event says that it is still made, and again after each further one.
const beatEvery = 30 * time.Second

// beat emits change-running for the changes that take long: a plugin need not report progress.
func (l *listener) beat() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(l.started)) {
		c, took := l.started[id], time.Since(l.started[id].at)
		if took/beatEvery <= c.beats {
			continue
		}
		c.beats = took / beatEvery
		l.started[id] = c
		l.run.emitFor(l.doc, l.result, Event{Type: EventChangeRunning, Result: &report.Change{ID: id, Summary: c.summary, DurationMs: took.Milliseconds()}})
	}
}

// receive is the callback of Apply. It relies on the client of pluginv1 for the order of events.
func (l *listener) receive(event pluginv1.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := event.(type) {
	case pluginv1.Started:
		l.start(e.Change)
	case pluginv1.Changed:
		l.end(e.ID, report.Changed)
	case pluginv1.Progress:
		l.requestReboot(e.Reboot)
		if e.Message != "" {
			l.emit(Event{Type: EventProgress, Message: e.Message}, len(e.Message))
		}
	case pluginv1.Warning:
		before := len(l.result.Warnings)
		if l.result = l.result.Warn(e); len(l.result.Warnings) > before {
			text := values.WarningText(e)
			l.emit(Event{Type: EventWarning, Message: text}, len(text))
		}
	}
	return nil
}

func (l *listener) start(c pluginv1.Change) {
	now := time.Now()
	l.started[c.ID] = started{summary: c.Summary, at: now}
	l.run.changed = true
	l.result = l.result.Add(report.Change{ID: c.ID, Summary: c.Summary, Outcome: report.Interrupted, StartedAt: l.run.times.At(now)})
	l.requestReboot(c.Reboot)
	l.emit(Event{Type: EventChangeStarted, Change: &c}, len(c.Summary)+len(c.Diff))
	// Before the change is made, so that a report that survives a crash names it. If the report cannot be saved, the plugin
	// finishes this change and starts no other.
	l.run.results[l.doc.Order] = l.result
	l.check(l.run.record())
}

func (l *listener) end(id string, outcome report.Outcome) {
	var done report.Change
	l.result, done = l.result.Finish(id, outcome, time.Since(l.started[id].at))
	delete(l.started, id)
	l.emit(Event{Type: EventChangeFinished, Result: &done}, len(done.Summary))
}

// close ends the changes that were started and not finished, and returns the result. failed means that the plugin reported
// their failure; otherwise their end is unknown.
func (l *listener) close(failed bool) values.Result {
	outcome := report.Interrupted
	if failed {
		outcome = report.Failed
	}
	for _, id := range slices.Sorted(maps.Keys(l.started)) {
		l.end(id, outcome)
	}
	if l.hidden > 0 {
		text := fmt.Sprintf("the plugin sent more than is shown: %d events are left out", l.hidden)
		l.result = l.result.Warn(pluginv1.Warning{Message: text})
		l.run.emitFor(l.doc, l.result, Event{Type: EventWarning, Message: text})
	}
	return l.result
}

func (l *listener) requestReboot(when pluginv1.Reboot) {
	l.check(l.run.requestReboot(l.doc.Label(), when, true))
}

// check keeps the first failure to save something.
func (l *listener) check(err error) {
	if err != nil && l.failure == nil {
		l.failure = err
		close(l.failed)
	}
}

// emit passes an event on within the document's budget.
func (l *listener) emit(e Event, bytes int) {
	if l.shown += bytes; l.shown > values.DocumentBudget {
		l.hidden++
		return
	}
	l.run.emitFor(l.doc, l.result, e)
}
