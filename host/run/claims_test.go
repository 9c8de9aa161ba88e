package run

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// claiming plans one change and claims values by document: "thing=value" claims a thing.
func claiming(values map[string]string) func(context.Context, pluginv1.Request) error {
	return func(_ context.Context, r pluginv1.Request) error {
		thing, value, _ := strings.Cut(values[docName(r)], "=")
		if thing == "" {
			return nil
		}
		e := pluginv1.AsError(precondition("not yet"))
		e.Claims = []pluginv1.Claim{pluginv1.NewClaim(r.ClaimKey, thing, "spec.provider", []byte(value))}
		return e
	}
}

func TestConflicts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		values  map[string]string
		exit    int
		message string // of b
	}{
		"different values": {map[string]string{"a": "sysctl:x=1", "b": "sysctl:x=2"}, report.ExitUsage, "sets sysctl:x to another value than Thing/a"},
		"equal values":     {map[string]string{"a": "sysctl:x=1", "b": "sysctl:x=1"}, report.ExitOK, ""},
		"whole and part":   {map[string]string{"a": "file:/x=1", "b": "file:/x#p=1,"}, report.ExitUsage, "sets a part of /x, the whole of which is set by Thing/a"},
		"part and whole":   {map[string]string{"a": "file:/x#p=1", "b": "file:/x=1,"}, report.ExitUsage, "sets the whole of /x, a part of which is set by Thing/a"},
		"whole, part gone": {map[string]string{"a": "file:/x=absent", "b": "file:/x#p=absent"}, report.ExitOK, ""},
		"two parts":        {map[string]string{"a": "file:/x#p=1", "b": "file:/x#q=2"}, report.ExitOK, ""},
		"two files":        {map[string]string{"a": "file:/x=1", "b": "file:/x%23p=2"}, report.ExitOK, ""},
		"different things": {map[string]string{"a": "sysctl:x=1", "b": "sysctl:y=2"}, report.ExitOK, ""},
	} {
		for _, mode := range []Mode{ModeValidate, ModePlan, ModeApply} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				p := w.add("x")
				p.plan = func(name string, _ int) (pluginv1.Plan, error) {
					thing, value, _ := strings.Cut(tt.values[name], "=")
					plan := oneChange()
					plan.Claims = []pluginv1.Claim{{ID: thing, Digest: []byte(value), Field: "spec.provider"}}
					return plan, nil
				}
				got := w.execute(Options{Mode: mode, Stream: things(named, "{provider: x}")})
				if tt.exit == report.ExitOK {
					assert.Contains(t, []int{report.ExitOK, report.ExitDiffers}, got.ExitCode)
					return
				}
				require.Equal(t, tt.exit, got.ExitCode)
				assert.Equal(t, "Failed Failed", outcomes(got))
				assert.NotContains(t, w.lines(), "apply")
				require.Len(t, got.Errors, 2)
				assert.Equal(t, report.CodeConflict, got.Errors[0].Code)
				assert.Equal(t, []any{"Thing/a", 5}, []any{got.Errors[0].Document, got.Errors[0].Line})
				assert.Equal(t, []any{"Thing/b", 10}, []any{got.Errors[1].Document, got.Errors[1].Line})
				assert.Contains(t, got.Errors[1].Message, tt.message+" at node.yaml:5:")
			})
		}
	}
}

// TestConflictAtATurn: a document that could not be planned before shows only at its turn what it owns.
func TestConflictAtATurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").plan = func(name string, calls int) (pluginv1.Plan, error) {
		plan := oneChange()
		plan.Claims = []pluginv1.Claim{{ID: "file:/etc/x", Digest: []byte(name)}}
		if name == "b" && calls == 1 {
			return pluginv1.Plan{}, precondition("a is missing")
		}
		return plan, nil
	}
	got := w.execute(Options{Mode: ModeApply, Stream: things(named, named, named)})
	assert.Equal(t, report.ExitUsage, got.ExitCode, "a and c are known to differ before")
	got = w.execute(Options{Mode: ModeApply, Stream: things(named)})
	require.Equal(t, report.ExitOK, got.ExitCode)

	w = newWorld(t)
	w.add("x").plan = func(name string, calls int) (pluginv1.Plan, error) {
		plan := oneChange()
		plan.Claims = []pluginv1.Claim{{ID: "file:/etc/x", Digest: []byte(name)}}
		if name == "b" && calls == 1 {
			return pluginv1.Plan{}, precondition("a is missing")
		}
		return plan, nil
	}
	got = w.execute(Options{Mode: ModeApply, Stream: things(named, named)})
	assert.Equal(t, report.ExitFailed, got.ExitCode)
	assert.Equal(t, "Changed Failed", outcomes(got))
	assert.Contains(t, errorsOf(got), "Conflict: sets file:/etc/x to another value than Thing/a")
	assert.NotContains(t, w.lines(), "apply b")
	assert.Equal(t, []string{"/etc/x"}, w.writes, "what is written is recorded before")
}

// TestConflictOfAPendingDocument: a Precondition that carries claims is compared before anything is changed.
func TestConflictOfAPendingDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.add("x")
	p.onPlan = func(ctx context.Context, r pluginv1.Request) error {
		if docName(r) == "a" {
			return nil
		}
		return claiming(map[string]string{"b": "file:/etc/x=1", "c": "file:/etc/x=2"})(ctx, r)
	}
	got := w.execute(Options{Mode: ModeApply, Stream: things(named, named, named)})
	assert.Equal(t, report.ExitUsage, got.ExitCode, errorsOf(got))
	assert.NotContains(t, w.lines(), "apply")
}

// TestConflictOfARefusedDocument: a Precondition that ends the first planning hides no conflict, and the conflict not it.
func TestConflictOfARefusedDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").onPlan = func(ctx context.Context, r pluginv1.Request) error {
		err := claiming(map[string]string{"a": "file:/etc/x=1", "b": "file:/etc/x=2"})(ctx, r)
		pluginv1.AsError(err).Final = true
		return err
	}
	got := w.execute(Options{Mode: ModeApply, Stream: things(named, named)})
	assert.Equal(t, report.ExitUsage, got.ExitCode)
	assert.Equal(t, "Failed Failed", outcomes(got))
	assert.Equal(t, 2, strings.Count(errorsOf(got), "Conflict: "), errorsOf(got))
	assert.Equal(t, 2, strings.Count(errorsOf(got), "Precondition: not yet"), errorsOf(got))
}

func TestNamedProviderThatDoesNotServeTheMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").fitness = pluginv1.FitnessUnsupported
	got := w.execute(Options{Mode: ModeApply, Stream: things(named)})
	assert.Equal(t, report.ExitPrecondition, got.ExitCode)
	assert.Equal(t, "spec.provider", got.Errors[0].Field)
	assert.Contains(t, got.Errors[0].Message, "the provider x does not serve this machine: as the test says")
	assert.Empty(t, w.lines(), "it was planned")
}

// TestOneLimitForAllTries: retries do not lengthen what a document may take, and the plugin is told what is left.
func TestOneLimitForAllTries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var left []time.Duration
	p := w.add("x")
	p.onApply = func(r pluginv1.Request) { left = append(left, r.TimeLeft) }
	p.apply = func(context.Context, string, func(pluginv1.Event) error) (pluginv1.Finished, error) {
		return pluginv1.Finished{Error: &pluginv1.Error{Code: pluginv1.CodeRetry, Message: "busy"}}, nil
	}
	doc := "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, timeout: 60ms}\nspec: {provider: x}\n"
	got := w.execute(Options{Mode: ModeApply, Stream: []byte(doc), Retry: RetryPolicy{First: 20 * time.Millisecond, Most: 20 * time.Millisecond, Total: time.Hour}})
	assert.Equal(t, report.ExitDeadline, got.ExitCode)
	assert.Contains(t, errorsOf(got), "applying it took longer than its 60ms")
	require.Greater(t, len(left), 1)
	for i := range left[1:] {
		assert.Less(t, left[i+1], left[i])
	}
	assert.LessOrEqual(t, left[0], 60*time.Millisecond)
}

// TestBudgets: what a plugin says beyond its budget is counted instead of kept.
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
	got := w.execute(Options{Mode: ModeApply, Stream: things(named, named, named, named, named, named)})
	require.Equal(t, report.ExitOK, got.ExitCode)
	size, events := 0, 0
	for i, d := range got.Documents {
		part := 0
		for _, c := range d.Changes {
			part += len(c.ID) + len(c.Summary)
		}
		assert.LessOrEqual(t, part, documentBudget)
		assert.Positive(t, d.Omitted, "document %d", i)
		size += part
	}
	assert.LessOrEqual(t, size, reportBudget)
	for _, e := range w.events {
		events += len(e.Message)
	}
	assert.LessOrEqual(t, events, 6*(documentBudget+each))
	shown, omitted := withinBudget([]pluginv1.Change{
		{ID: "a", Summary: "a", Diff: strings.Repeat("+", documentBudget)}, {ID: "b", Summary: "b", Diff: "+"}, {ID: "c", Summary: strings.Repeat("c", documentBudget)},
	})
	assert.Equal(t, 2, omitted)
	assert.Equal(t, []pluginv1.Change{{ID: "a", Summary: "a"}, {ID: "b", Summary: "b", Diff: "+"}}, shown)
}

// TestPreconditionPointsAtItsFields: each violation is an error of its own, at its field, with the facts.
func TestPreconditionPointsAtItsFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := pluginv1.AsError(invalid("spec.one", "spec.two"))
	e.Code, e.Hint, e.Facts = pluginv1.CodePrecondition, "load the module", map[string]string{"module": "x"}
	w.add("x").plan = planFor(map[string]error{"a": e})
	got := w.execute(Options{Mode: ModeApply, Stream: things("{provider: x, one: 1,\n  two: 2}")})
	require.Equal(t, report.ExitPrecondition, got.ExitCode)
	require.Len(t, got.Errors, 2)
	assert.Equal(t, []int{0, 1}, got.Documents[0].Errors)
	for i, want := range []struct {
		field string
		line  int
	}{{"spec.one", 5}, {"spec.two", 6}} {
		assert.Equal(t, want.field, got.Errors[i].Field)
		assert.Equal(t, want.line, got.Errors[i].Line)
		assert.Equal(t, "load the module", got.Errors[i].Hint)
		assert.Equal(t, "x", got.Errors[i].Facts["module"])
	}
}

// TestHintsPointAtDetailsThatExist: without output there is no details.json to point at.
func TestHintsPointAtDetailsThatExist(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]bool{"with output": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.add("x")
			p.silent = silent
			p.apply = applyEnds(pluginv1.Finished{}, pluginv1.ErrCrashed)
			got := w.execute(Options{Mode: ModeApply, Stream: things(named)})
			assert.Equal(t, !silent, strings.Contains(got.Errors[0].Hint, "details.json"))
			assert.Equal(t, !silent, len(w.details) == 1)
		})
	}
}
