package run

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run/values"
)

// TestBudgets: output of a plugin beyond its budget is counted instead of kept.
func TestBudgets(t *testing.T) {
	t.Parallel()
	const each = 4 << 10
	w := newWorld(t)
	w.add("x").apply = func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
		for i := range 1000 {
			name := strings.Repeat("x", each-4) + string(rune('a'+i%26)) + strings.Repeat("y", i%7)
			if err := change(send, pluginv1.Change{ID: name + string(rune('0'+i/26)), Summary: "do it"}); err != nil {
				return pluginv1.Finished{}, err
			}
			if err := send(pluginv1.Progress{Message: name}); err != nil {
				return pluginv1.Finished{}, err
			}
		}
		return pluginv1.Finished{}, nil
	}
	got := w.execute(Options{Mode: ModeApply, Text: things(named, named, named, named, named, named)})
	require.Equal(t, report.ExitOK, got.ExitCode)
	size, events := 0, 0
	for i, d := range got.Documents {
		part := 0
		for _, c := range d.Changes {
			part += len(c.ID) + len(c.Summary)
		}
		assert.LessOrEqual(t, part, values.DocumentBudget)
		assert.Positive(t, d.Omitted, "document %d", i)
		size += part
	}
	assert.LessOrEqual(t, size, values.ReportBudget)
	for _, e := range w.events {
		events += len(e.Message)
	}
	assert.LessOrEqual(t, events, 6*(values.DocumentBudget+each))
	shown, omitted := withinBudget([]PlannedChange{
		{Change: pluginv1.Change{ID: "a", Summary: "a", Diff: strings.Repeat("+", values.DocumentBudget)}},
		{Change: pluginv1.Change{ID: "b", Summary: "b", Diff: "+"}},
		{Change: pluginv1.Change{ID: "c", Summary: strings.Repeat("c", values.DocumentBudget)}},
	})
	assert.Equal(t, 2, omitted)
	assert.Equal(t, []PlannedChange{
		{Change: pluginv1.Change{ID: "a", Summary: "a"}}, {Change: pluginv1.Change{ID: "b", Summary: "b", Diff: "+"}},
	}, shown)
}

func TestPlanReceivesTheStateDirectoryOfApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.add("x")
	planned := map[string]bool{}
	p.onPlan = func(_ context.Context, r pluginv1.Request) error { planned[r.StateDir] = true; return nil }
	w.execute(Options{Mode: ModeApply, Text: things(named)})
	if want := "/state/machineadm-thing-plugin-x/Thing-a"; p.stateDir != want || len(planned) != 1 || !planned[want] {
		t.Errorf("Apply had the state directory %q, Plan %v, want %q", p.stateDir, planned, want)
	}
	planned = map[string]bool{}
	w.execute(Options{Mode: ModePlan, Text: things(named)})
	if len(planned) != 1 || !planned["/state/machineadm-thing-plugin-x/Thing-a"] {
		t.Errorf("Plan must receive the state directory of Apply, not %v", planned)
	}
}

func TestChangesOfADocumentThatFailed(t *testing.T) {
	t.Parallel()
	failed := pluginv1.Finished{Error: pluginv1.AsError(precondition("no"))}
	for name, tt := range map[string]struct {
		apply applyFunc
		want  string
	}{
		"the plugin reports the failure":     {applyEnds(failed, nil), "a Failed"},
		"the plugin crashes":                 {applyEnds(pluginv1.Finished{}, pluginv1.ErrCrashed), "a Interrupted"},
		"a repeated change is reported once": {retryThen(applyEnds(failed, nil)), "a Failed"},
		"a try that succeeds counts":         {retryThen(reboots(pluginv1.RebootNone)), "a Changed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.add("x").apply = tt.apply
			got := w.execute(Options{Mode: ModeApply, Text: things(named)})
			var changes []string
			for _, c := range got.Documents[0].Changes {
				changes = append(changes, c.ID+" "+string(c.Outcome))
			}
			if strings.Join(changes, ", ") != tt.want {
				t.Errorf("changes %q, want %q", changes, tt.want)
			}
		})
	}
}
