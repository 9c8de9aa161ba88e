package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// listener turns the events of one Apply into the report and into events for people.
type listener struct {
	run    *run
	item   *item
	begun  map[string]time.Time
	unkept chan<- struct{} // the watcher's
}

// take implements the callback of Apply.
func (l *listener) take(event pluginv1.Event) error {
	switch e := event.(type) {
	case pluginv1.Started:
		return l.started(e.Change)
	case pluginv1.Changed:
		return l.ended(e.ID, report.Changed)
	case pluginv1.Progress:
		l.askReboot(e.Reboot)
		if e.Message != "" {
			l.run.emit(Event{Type: EventProgress, Document: l.item.out, Message: e.Message})
		}
	case pluginv1.Warning:
		text := e.Message
		if e.Field != "" {
			text = e.Field + ": " + e.Message
		}
		if l.item.noteWarning(text) {
			l.run.emit(Event{Type: EventWarning, Document: l.item.out, Message: text})
		}
	}
	return nil
}

func (l *listener) started(c pluginv1.Change) error {
	if _, open := l.begun[c.ID]; open {
		return &pluginv1.Error{Message: fmt.Sprintf("the plugin started the change %q twice", c.ID)}
	}
	l.begun[c.ID] = time.Now()
	l.askReboot(c.Reboot)
	// What an earlier try of the document did not finish is told once, by its last try.
	l.item.out.Changes = slices.DeleteFunc(l.item.out.Changes, func(old report.Change) bool {
		return old.ID == c.ID && old.Outcome != report.Changed
	})
	l.item.out.Changes = append(l.item.out.Changes,
		report.Change{ID: c.ID, Summary: c.Summary, Outcome: report.Interrupted})
	l.run.emit(Event{Type: EventChangeStarted, Document: l.item.out, Change: &c})
	// Before it is done: a report that survives a crash names the change in hand. That one is finished, and no other begun.
	if err := l.run.record(); err != nil {
		select {
		case l.unkept <- struct{}{}:
		default: // the watcher knows
		}
	}
	return nil
}

func (l *listener) ended(id string, outcome report.Outcome) error {
	begun, open := l.begun[id]
	if !open {
		return &pluginv1.Error{Message: fmt.Sprintf("the plugin ended the change %q, which it had not started", id)}
	}
	delete(l.begun, id)
	changes := l.item.out.Changes
	for i := len(changes) - 1; i >= 0; i-- {
		if changes[i].ID == id {
			changes[i].Outcome = outcome
			changes[i].DurationMs = time.Since(begun).Milliseconds()
			done := changes[i]
			l.run.emit(Event{Type: EventChangeFinished, Document: l.item.out, Result: &done})
			return nil
		}
	}
	return nil
}

// abandon settles the changes that were begun and not done: the plugin has said that they failed, or their end is not
// known.
func (l *listener) abandon(said bool) {
	outcome := report.Interrupted
	if said {
		outcome = report.Failed
	}
	for _, id := range sortedKeys(l.begun) {
		_ = l.ended(id, outcome) // it was begun
	}
}

// askReboot notes the soonest reboot that was asked for. An image has nothing to reboot.
func (l *listener) askReboot(r pluginv1.Reboot) {
	if l.run.o.Root == "" {
		l.item.asked = max(l.item.asked, r)
	}
}
