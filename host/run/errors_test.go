package run

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// TestPreconditionNamesItsFields: each violation is a separate error with its field and the facts.
func TestPreconditionNamesItsFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := pluginv1.AsError(invalid("spec.one", "spec.two"))
	e.Code, e.Hint, e.Facts = pluginv1.CodePrecondition, "load the module", map[string]string{"module": "x"}
	w.add("x").plan = planFor(map[string]error{"a": e})
	got := w.execute(Options{Mode: ModeApply, Text: things("{provider: x, one: 1,\n  two: 2}")})
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

// TestHintNamesExistingDetails: without output there is no details.json to name.
func TestHintNamesExistingDetails(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]bool{"with output": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.add("x")
			p.silent = silent
			p.apply = applyEnds(pluginv1.Finished{}, pluginv1.ErrCrashed)
			got := w.execute(Options{Mode: ModeApply, Text: things(named)})
			assert.Equal(t, !silent, strings.Contains(got.Errors[0].Hint, "details.json"))
			assert.Equal(t, !silent, len(w.details) == 1)
		})
	}
}

func TestErrorsOfAllDocumentsAreReported(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		stream   []byte
		exit     int
		outcome  report.Outcome
		outcomes string
		errors   []string
	}{
		"two missing plugins": {
			stream: things("{provider: y}", named, "{provider: z}"),
			exit:   report.ExitPrecondition, outcome: report.RunFailed, outcomes: "Failed Skipped Failed",
			errors: []string{"machineadm-thing-plugin-y", "machineadm-thing-plugin-z"},
		},
		"a configuration error precedes a missing plugin": {
			stream: things("{provider: y}", "{provider: x, bad: 1}"),
			exit:   report.ExitUsage, outcome: report.RunInvalid, outcomes: "Failed Failed",
			errors: []string{"machineadm-thing-plugin-y", "InvalidConfig: is wrong"},
		},
		"a document with a syntax error, and one without a plugin": {
			stream: append(things("{provider: y}"), "---\nkind: [\n"...),
			exit:   report.ExitUsage, outcome: report.RunInvalid, outcomes: "Failed",
			errors: []string{"machineadm-thing-plugin-y", "InvalidConfig"},
		},
		"a configuration error precedes a refusal of every provider": {
			stream: things("{provider: x, cannot: 1}", "{provider: x, bad: 1}"),
			exit:   report.ExitUsage, outcome: report.RunInvalid, outcomes: "Failed Failed",
			errors: []string{"Unsupported: no such thing here", "InvalidConfig: is wrong"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.add("x").onPlan = func(_ context.Context, r pluginv1.Request) error {
				switch doc := string(r.Document); {
				case strings.Contains(doc, "bad"):
					return invalid("spec.bad")
				case strings.Contains(doc, "cannot"):
					return unsupported("no such thing here")
				}
				return nil
			}
			got := w.execute(Options{Mode: ModeApply, Text: tt.stream})
			if got.ExitCode != tt.exit || got.Outcome != tt.outcome || outcomes(got) != tt.outcomes {
				t.Errorf("exit %d %s [%s], want %d %s [%s]; errors:\n%s", got.ExitCode, got.Outcome, outcomes(got),
					tt.exit, tt.outcome, tt.outcomes, errorsOf(got))
			}
			for _, want := range tt.errors {
				if !strings.Contains(errorsOf(got), want) {
					t.Errorf("errors:\n%s\nwant %q", errorsOf(got), want)
				}
			}
			if strings.Contains(w.lines(), "apply") {
				t.Errorf("something was applied:\n%s", w.lines())
			}
		})
	}
}

func TestAllViolationsAtATurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").plan = func(name string, calls int) (pluginv1.Plan, error) {
		switch {
		case name == "a":
			return oneChange(), nil
		case calls == 1:
			return pluginv1.Plan{}, precondition("not yet")
		}
		return pluginv1.Plan{}, invalid("spec.one", "spec.two", "spec.three")
	}
	got := w.execute(Options{Mode: ModeApply, Text: things(named, named)})
	var fields []string
	for _, e := range got.Errors {
		fields = append(fields, e.Field)
	}
	if got.ExitCode != report.ExitFailed || strings.Join(fields, " ") != "spec.one spec.two spec.three" {
		t.Errorf("exit %d, fields %q", got.ExitCode, fields)
	}
}

func TestErrorOfADocumentHasAPosition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").apply = applyEnds(pluginv1.Finished{Error: pluginv1.AsError(precondition("not ready"))}, nil)
	got := w.execute(Options{Mode: ModeApply, Text: things(named)})
	if e := got.Errors[got.Documents[0].Errors[0]]; e.File != "node.yaml" || e.Line != 2 || e.Hint == "" {
		t.Errorf("error %+v", e)
	}
	got = w.execute(Options{Mode: ModeApply, Text: things("{provider: y}")})
	if e := got.Errors[got.Documents[0].Errors[0]]; e.Line != 5 || e.Field != "spec.provider" || e.Hint == "" {
		t.Errorf("error %+v", e)
	}
}

func TestErrorsHavePositions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").plan = planFor(map[string]error{"b": invalid("spec.one", "spec.two")})
	got := w.execute(Options{Mode: ModeApply, Text: things(named, "{provider: x, one: 1,\n  two: 2}")})
	var places []string
	for _, e := range got.Errors {
		places = append(places, fmt.Sprintf("%s:%d:%d %s %s", e.File, e.Line, e.Column, e.Document, e.Field))
	}
	want := "node.yaml:10:21 Thing/b spec.one\nnode.yaml:11:3 Thing/b spec.two"
	if strings.Join(places, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(places, "\n"), want)
	}
}
