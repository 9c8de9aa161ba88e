package reporting

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run"
)

const mark = "M4RK"

// marked are an event of each type and the report of its run. What the event alone has to show is mark.
func marked() map[run.EventType]func() (run.Event, report.Report) {
	of := func(d report.Document, e run.Event) (run.Event, report.Report) {
		e.Document = &d
		return e, head(report.RunSucceeded, report.ExitOK, d)
	}
	return map[run.EventType]func() (run.Event, report.Report){
		run.EventRunStarted: func() (run.Event, report.Report) {
			r := head(report.RunRunning, 0)
			return run.Event{Report: &r}, r
		},
		run.EventDocumentPlanned: func() (run.Event, report.Report) {
			d := sysctl()
			d.Warnings = []string{mark}
			return of(d, run.Event{})
		},
		run.EventDocumentStarted: func() (run.Event, report.Report) {
			d := sysctl()
			d.Name = mark
			return of(d, run.Event{})
		},
		run.EventChangeStarted: func() (run.Event, report.Report) {
			return of(ended(sysctl(), "", 1, change(mark, report.Interrupted, 0)), run.Event{Change: &pluginv1.Change{ID: "id", Summary: mark}})
		},
		run.EventChangeRunning: func() (run.Event, report.Report) {
			c := report.Change{ID: "id", Summary: mark, DurationMs: 30000}
			return of(ended(sysctl(), "", 1, change(mark, report.Interrupted, 0)), run.Event{Result: &c})
		},
		run.EventProgress: func() (run.Event, report.Report) { return of(sysctl(), run.Event{Message: mark}) },
		run.EventChangeFinished: func() (run.Event, report.Report) {
			c := change(mark, report.Failed, 1)
			return of(ended(sysctl(), report.Failed, 1, c), run.Event{Result: &c})
		},
		run.EventWarning: func() (run.Event, report.Report) {
			d := sysctl()
			d.Warnings = []string{mark}
			return of(d, run.Event{Message: mark})
		},
		run.EventRetry: func() (run.Event, report.Report) { return of(sysctl(), run.Event{Message: mark}) },
		run.EventDocumentFinished: func() (run.Event, report.Report) {
			d := ended(sysctl(), report.Unchanged, 1)
			d.Name = mark
			return of(d, run.Event{})
		},
		run.EventRunFinished: func() (run.Event, report.Report) {
			r := head(report.RunFailed, report.ExitFailed, sysctl())
			r.Errors = []report.Error{{Code: "Internal", Message: mark}}
			return run.Event{Report: &r}, r
		},
	}
}

// The places where a user looks.
const inText, onTerminal, inPlan, inJSON, inStatus, inReport = "text", "terminal", "plan", "json", "status", "report"

// TestEveryEventIsVisible: what an event shows is in every form of the output and in the report. The exceptions have their reasons.
func TestEveryEventIsVisible(t *testing.T) {
	t.Parallel()
	const transient = "what is on its way is not kept: the outcome is"
	const applies = "a plan applies nothing"
	const statusLine = "in the status line"
	exceptions := map[run.EventType]map[string]string{
		run.EventRunStarted: {
			inText: "says nothing of its own", onTerminal: statusLine, inPlan: "as text", inJSON: "has its type alone", inStatus: "as text", inReport: "as text",
		},
		run.EventDocumentStarted:  {inPlan: applies},
		run.EventChangeStarted:    {inPlan: applies},
		run.EventChangeRunning:    {inPlan: applies, onTerminal: statusLine},
		run.EventChangeFinished:   {inPlan: applies},
		run.EventDocumentFinished: {inPlan: applies},
		run.EventProgress:         {inPlan: transient, inStatus: transient, inReport: transient},
		run.EventRetry:            {inPlan: applies, inStatus: transient, inReport: transient},
	}
	all := marked()
	for _, name := range constants(t, "../run", "EventType") {
		kind := run.EventType(name)
		require.Contains(t, all, kind, "a new type of event: add it to marked")
		e, r := all[kind]()
		e.Type, e.Time = kind, moment()
		for place, shown := range everywhere(t, e, r) {
			if exceptions[kind][place] != "" {
				assert.NotContains(t, shown, mark, "%s in %s is no exception", kind, place)
				continue
			}
			assert.Contains(t, shown, mark, "%s is not visible in %s", kind, place)
		}
	}
}

// everywhere returns what each place shows of an event and of the report of its run.
func everywhere(t *testing.T, e run.Event, r report.Report) map[string]string {
	t.Helper()
	var text, terminal, plan, json, status, sent strings.Builder
	Text{Out: &text, Err: &text}.Observe(e)
	Plan{Out: &plan, Err: &plan}.Observe(e)
	JSON{Out: &json}.Observe(e)
	JSON{Out: &sent}.Observe(run.Event{Type: run.EventRunFinished, Time: moment(), Report: &r})
	require.NoError(t, Status(&status, r, false, false, 0))
	l := NewLive(&terminal, false, nil, 0)
	if e.Type != run.EventRunStarted && e.Type != run.EventRunFinished {
		start := head(report.RunRunning, 0, sysctl())
		l.Observe(run.Event{Type: run.EventRunStarted, Time: moment(), Report: &start})
	}
	l.Observe(e)
	l.Close()
	return map[string]string{
		inText: text.String(), onTerminal: terminal.String(), inPlan: plan.String(), inJSON: json.String(), inStatus: status.String(), inReport: sent.String(),
	}
}

// TestWarningsStay: a warning stays on a terminal, where a status line is erased.
func TestWarningsStay(t *testing.T) {
	t.Parallel()
	for _, kind := range slices.Sorted(slices.Values([]run.EventType{run.EventWarning, run.EventDocumentPlanned, run.EventRetry})) {
		e, _ := marked()[kind]()
		e.Type = kind
		var sent strings.Builder
		l := NewLive(&sent, false, nil, 0)
		l.Observe(e)
		l.Close()
		assert.Contains(t, settled(sent.String()), mark, kind)
	}
}
