package run

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// wantWarned compares the warnings of a report with the events of its run: a reader of either sees all of them, once.
func wantWarned(t *testing.T, r report.Report, events []Event) {
	t.Helper()
	shown := map[string][]string{}
	for _, e := range events {
		switch e.Type {
		case EventDocumentPlanned:
			shown[e.Document.ID] = append(shown[e.Document.ID], e.Document.Warnings...)
		case EventWarning:
			shown[e.Document.ID] = append(shown[e.Document.ID], e.Message)
		default:
		}
	}
	for _, d := range r.Documents {
		if d.Omitted > 0 {
			continue
		}
		for _, w := range d.Warnings {
			assert.Contains(t, shown[d.ID], w, "%s: no event shows a warning of the report", d.Name)
		}
		for _, w := range shown[d.ID] {
			if !strings.HasSuffix(w, "are too large to be shown") {
				assert.Contains(t, d.Warnings, w, "%s: the report has no warning that an event showed", d.Name)
			}
		}
	}
}

const look, earlier = "look here", "what an earlier try got is used"

// warned is a plan with a warning.
func warned(changes ...pluginv1.Change) pluginv1.Plan {
	return pluginv1.Plan{Changes: changes, Warnings: []pluginv1.Warning{{Message: look}}}
}

// warningCase is a run with a warning.
type warningCase struct {
	stream string
	mode   Mode
	want   string
	plan   func(name string, calls int) (pluginv1.Plan, error)
	apply  func(ctx context.Context, name string, send func(pluginv1.Event) error) (pluginv1.Finished, error)
	answer func(uri string, calls int) error
	unsent error
}

func warningCases() map[string]warningCase {
	gone := func(string, int) error { return answered("410") }
	late := func(_ string, calls int) error {
		if calls == 1 {
			return unreachable()
		}
		return answered("410")
	}
	planned := func(string, int) (pluginv1.Plan, error) { return warned(oneChange().Changes...), nil }
	return map[string]warningCase{
		"a withdrawn object, planned":     {stream: remote("r", "u:1"), mode: ModePlan, want: earlier, answer: gone},
		"a withdrawn object, applied":     {stream: remote("r", "u:1"), mode: ModeApply, want: earlier, answer: gone},
		"a withdrawn object, at its turn": {stream: thing("a") + remote("r", "u:1"), mode: ModeApply, want: earlier, answer: late},
		"a report that cannot be sent": {
			stream: reference("ReportTarget", "t", "{provider: web, uri: u}"), mode: ModeApply, want: "the report cannot be sent", unsent: unreachable(),
		},
		"a plan":                 {stream: thing("a"), mode: ModePlan, want: look, plan: planned},
		"a plan that is applied": {stream: thing("a"), mode: ModeApply, want: look, plan: planned},
		"a plan at its turn": {stream: thing("a") + thing("b"), mode: ModeApply, want: look, plan: func(name string, calls int) (pluginv1.Plan, error) {
			if name == "b" && calls == 1 {
				return pluginv1.Plan{}, &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "not yet"}
			}
			if name == "b" {
				return warned(oneChange().Changes...), nil
			}
			return oneChange(), nil
		}},
		"an apply": {stream: thing("a"), mode: ModeApply, want: look, apply: func(
			_ context.Context, _ string, send func(pluginv1.Event) error,
		) (pluginv1.Finished, error) {
			return pluginv1.Finished{}, send(pluginv1.Warning{Message: look})
		}},
		"a plan of a run that ends before any turn": {
			stream: thing("a") + thing("b"), mode: ModeApply, want: look, plan: func(name string, _ int) (pluginv1.Plan, error) {
				if name == "b" {
					return pluginv1.Plan{}, invalid("spec.one")
				}
				return warned(oneChange().Changes...), nil
			},
		},
	}
}

// TestWarnings: every warning of a run is an event and in the report, wherever it comes from and however the run ends. wantWarned
// compares the two after every run of this package.
func TestWarnings(t *testing.T) {
	t.Parallel()
	for name, tt := range warningCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			x := w.add("x")
			s := w.serve("web", map[string]string{"u:1": thing("c")})
			if tt.answer != nil {
				w.keepOne(x)
				clear(s.calls)
			}
			s.answer, s.onReport = tt.answer, tt.unsent
			if tt.plan != nil {
				x.plan = tt.plan
			}
			if tt.apply != nil {
				x.apply = tt.apply
			}
			before := len(w.events)
			got := w.execute(Options{Mode: tt.mode, Text: []byte(tt.stream)})
			in := slices.ContainsFunc(got.Documents, func(d report.Document) bool { return strings.Contains(strings.Join(d.Warnings, "\n"), tt.want) })
			assert.True(t, in, "the report has no such warning: %v", got.Documents)
			assert.Equal(t, 1, warningsIn(w.events[before:], tt.want), "events with the warning")
		})
	}
}

// keepOne fails a run that has resolved u:1.
func (w *world) keepOne(x *fakePlugin) {
	w.t.Helper()
	apply := x.apply
	x.apply = func(context.Context, string, func(pluginv1.Event) error) (pluginv1.Finished, error) {
		return pluginv1.Finished{Error: &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "not yet"}}, nil
	}
	require.NotZero(w.t, w.execute(Options{Mode: ModeApply, Text: []byte(remote("r", "u:1"))}).ExitCode)
	require.Len(w.t, w.resolved, 1)
	clear(x.calls)
	x.apply = apply
}

func warningsIn(events []Event, text string) (n int) {
	for _, e := range events {
		if e.Type == EventWarning && strings.Contains(e.Message, text) ||
			e.Type == EventDocumentPlanned && strings.Contains(strings.Join(e.Document.Warnings, "\n"), text) {
			n++
		}
	}
	return n
}

// TestWarningsBesideAPrecondition: what a plugin has to say of a document is shown also where the machine, or the empty root of a
// validation, lacks what its plan needs.
func TestWarningsBesideAPrecondition(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		mode Mode
		exit int
	}{
		"validate": {ModeValidate, report.ExitOK}, "plan": {ModePlan, report.ExitPrecondition}, "apply": {ModeApply, report.ExitPrecondition},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.add("x").plan = func(string, int) (pluginv1.Plan, error) {
				return pluginv1.Plan{}, &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "not yet", Warnings: []pluginv1.Warning{{Message: look}}}
			}
			got := w.execute(Options{Mode: tt.mode, Text: things(named)})
			require.Equal(t, tt.exit, got.ExitCode, errorsOf(got))
			assert.Equal(t, []string{look}, got.Documents[0].Warnings)
			assert.Equal(t, 1, warningsIn(w.events, look))
		})
	}
}
