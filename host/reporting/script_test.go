package reporting

import (
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run"
)

// script writes a run down. Like the run itself, it changes the documents that its events point to.
type script struct {
	now    time.Time
	report report.Report
	events []run.Event
}

func (s *script) say(e run.Event) {
	e.Time = s.now
	s.events = append(s.events, e)
}

// changeID is how a plugin could call a change.
func changeID(summary string) string {
	return strings.NewReplacer("write ", "file:", "join ", "join:", " ", "-").Replace(summary)
}

func (s *script) document(i int) *report.Document { return &s.report.Documents[i] }

// planned is a copy: the list must not keep the original.
func (s *script) planned(i int, pending string, changes ...string) {
	d := *s.document(i)
	e := run.Event{Type: run.EventDocumentPlanned, Document: &d, Pending: pending}
	for _, c := range changes {
		e.Planned = append(e.Planned, run.PlannedChange{Change: pluginv1.Change{ID: changeID(c), Summary: c}})
	}
	s.say(e)
}

func (s *script) started(i int) {
	d := *s.document(i)
	s.say(run.Event{Type: run.EventDocumentStarted, Document: &d})
}

func (s *script) doing(i int, change string) {
	d := *s.document(i)
	s.say(run.Event{Type: run.EventChangeStarted, Document: &d, Change: &pluginv1.Change{ID: changeID(change), Summary: change}})
}

func (s *script) done(i int, change string, outcome report.Outcome, ms int64) {
	c := report.Change{ID: changeID(change), Summary: change, Outcome: outcome, DurationMs: ms}
	s.document(i).Changes = append(s.document(i).Changes, c)
	d := *s.document(i)
	s.say(run.Event{Type: run.EventChangeFinished, Document: &d, Result: &c})
}

func (s *script) running(i int, change string, ms int64) {
	d := *s.document(i)
	s.say(run.Event{Type: run.EventChangeRunning, Document: &d, Result: &report.Change{ID: changeID(change), Summary: change, DurationMs: ms}})
}

func (s *script) word(kind run.EventType, i int, message string) {
	d := *s.document(i)
	s.say(run.Event{Type: kind, Document: &d, Message: message})
}

func (s *script) finished(i int, outcome report.Outcome, ms int64) {
	d := s.document(i)
	d.Outcome, d.DurationMs = outcome, ms
	also := *d
	e := run.Event{Type: run.EventDocumentFinished, Document: &also}
	for _, at := range also.Errors {
		e.Errors = append(e.Errors, s.report.Errors[at])
	}
	s.say(e)
}
