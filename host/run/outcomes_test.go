package run

import (
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// outcomeTest is a stream, a world and the expected result.
type outcomeTest struct {
	setup    func(w *world)
	options  Options
	exit     int
	outcome  report.Outcome
	outcomes string
	errors   []string // each must be part of the errors
	log      string   // if set, must be the whole log
	sentinel bool
}

// run executes a test of outcomes.
func (tt outcomeTest) run(t *testing.T) {
	t.Helper()
	w := newWorld(t)
	w.add("x")
	if tt.setup != nil {
		tt.setup(w)
	}
	got := w.execute(tt.options)
	if got.ExitCode != tt.exit || got.Outcome != tt.outcome || outcomes(got) != tt.outcomes {
		t.Errorf("exit %d %s [%s], want %d %s [%s]\nerrors:\n%s\nlog:\n%s", got.ExitCode, got.Outcome, outcomes(got),
			tt.exit, tt.outcome, tt.outcomes, errorsOf(got), w.lines())
	}
	for _, want := range tt.errors {
		if !strings.Contains(errorsOf(got), want) {
			t.Errorf("errors:\n%s\nwant %q among them", errorsOf(got), want)
		}
	}
	if tt.log != "" && w.lines() != strings.TrimSpace(tt.log) {
		t.Errorf("log:\n%s\nwant:\n%s", w.lines(), tt.log)
	}
	if w.sentinel != tt.sentinel {
		t.Errorf("sentinel is there: %v, want %v", w.sentinel, tt.sentinel)
	}
}

// TestStreamOutcomes: which documents and plugins a stream may have.
func TestStreamOutcomes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]outcomeTest{
		"a configuration error anywhere ends the run before any change, and every error is reported": {
			setup: func(w *world) {
				w.plugins["x"].plan = planFor(map[string]error{"b": invalid("spec.one", "spec.two"), "c": invalid("spec.three")})
			},
			options: Options{Mode: ModeApply, Text: things(named, "{provider: x, one: 1,\n two: 2}", named)},
			exit:    report.ExitUsage, outcome: report.RunInvalid, outcomes: "Skipped Failed Failed",
			log: "plan a by x\nplan b by x\nplan c by x",
		},
		"a named provider that does not support a field is an error": {
			setup: func(w *world) {
				w.plugins["x"].plan = planFor(map[string]error{"a": unsupported("no such field here")})
			},
			options: Options{Mode: ModeApply, Text: things(named)},
			exit:    report.ExitPrecondition, outcome: report.RunInvalid, outcomes: "Failed",
			errors: []string{"Unsupported: no such field here"},
		},
		"a missing plugin": {
			options: Options{Mode: ModeApply, Text: things("{provider: y}")},
			exit:    report.ExitPrecondition, outcome: report.RunFailed, outcomes: "Failed",
			errors: []string{"machineadm-thing-plugin-y"}, log: " ",
		},
		"an unserved kind of another group names both": {
			options: Options{Mode: ModeApply, Text: []byte("apiVersion: example.com/v9\nkind: Thing\nmetadata: {name: a}\nspec: {provider: x}\n")},
			exit:    report.ExitPrecondition, outcome: report.RunInvalid, outcomes: "Failed",
			errors: []string{"machineadm-thing-plugin-x does not serve Thing of example.com/v9; it serves Thing of example.com/v1"},
		},
		"an unknown version of a kind of the contract is a configuration error": {
			options: Options{Mode: ModeApply, Text: []byte("apiVersion: machineadm.cluster.x-k8s.io/v7\nkind: Sysctl\nmetadata: {name: a}\nspec: {provider: x}\n")},
			exit:    report.ExitUsage, outcome: report.RunInvalid, outcomes: "Failed", errors: []string{"v7"},
		},
		"a document for another machine is not applicable": {
			options: Options{Mode: ModeApply, Text: []byte("apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, when: {os: [windows]}}\nspec: {provider: x}\n")},
			exit:    report.ExitPrecondition, outcome: report.RunFailed, outcomes: "NotApplicable", log: " ",
			errors: []string{"no document of the stream applies to this machine (os linux, distribution debian, architecture amd64)"},
		},
		"a phase that is not selected is deferred, and there is no sentinel": {
			options: Options{Mode: ModeApply, Phase: pluginv1.PhaseProvisioning, Text: things(named)},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Deferred/phase", log: " ",
		},
		"an image defers what needs the live machine, and has no sentinel": {
			setup: func(w *world) {
				w.plugins["x"].plan = func(string, int) (pluginv1.Plan, error) {
					return pluginv1.Plan{Changes: []pluginv1.Change{{ID: "live", Summary: "start", NeedsLive: true}}}, nil
				}
			},
			options: Options{Mode: ModeApply, Root: "/image", Text: things(named)},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Deferred/live", log: "plan a by x",
		},
		"a secret does not go into an image": {
			options: Options{Mode: ModeApply, Root: "/image", Text: things("{provider: x, auth: [{password: {value: s3cr3t}}]}")},
			exit:    report.ExitUsage, outcome: report.RunInvalid, outcomes: "Failed", log: "plan a by x",
			errors: []string{"a secret would be written into an image"},
		},
		"a secret hides no other error": {
			setup: func(w *world) {
				w.add("x").plan = func(string, int) (pluginv1.Plan, error) {
					return pluginv1.Plan{}, &pluginv1.Error{Code: pluginv1.CodeInvalidConfig, Violations: []document.Violation{{Field: "spec.auth", Message: "is wrong"}}}
				}
			},
			options: Options{Mode: ModeApply, Root: "/image", Text: things("{provider: x, auth: [{password: {value: s3cr3t}}]}")},
			exit:    report.ExitUsage, outcome: report.RunInvalid, outcomes: "Failed", log: "plan a by x",
			errors: []string{"a secret would be written into an image", "is wrong"},
		},
		"a secret of another phase does not go into an image": {
			options: Options{Mode: ModeApply, Root: "/image", Phase: pluginv1.PhaseProvisioning, Text: things("{provider: x, password: {value: s3cr3t}}")},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Deferred/phase", log: " ",
		},
		"a secret for another machine does not go into an image": {
			options: Options{Mode: ModeApply, Root: "/image", Text: append(things(named),
				"---\napiVersion: example.com/v1\nkind: Thing\nmetadata: {name: w, when: {os: [windows]}}\nspec: {provider: x, password: {value: s3cr3t}}\n"...)},
			exit: report.ExitOK, outcome: report.RunSucceeded, outcomes: "Changed NotApplicable",
		},
		"a secret goes into an image with AllowSecrets": {
			options: Options{Mode: ModeApply, Root: "/image", AllowSecrets: true, Text: things("{provider: x, password: {value: s3cr3t}}")},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Changed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.run(t)
		})
	}
}

// TestPlanOutcomes: what a plan and a validation report, and reports that cannot be saved.
func TestPlanOutcomes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]outcomeTest{
		"a plan with changes": {
			options: Options{Mode: ModePlan, Text: things(named)},
			exit:    report.ExitDiffers, outcome: report.RunSucceeded, outcomes: "Changed", log: "plan a by x",
		},
		"a plan is pending if an earlier document may satisfy its precondition": {
			setup: func(w *world) {
				w.plugins["x"].plan = planFor(map[string]error{"b": precondition("later")})
			},
			options: Options{Mode: ModePlan, Text: things(named, named)},
			exit:    report.ExitDiffers, outcome: report.RunSucceeded, outcomes: "Changed ",
		},
		"a precondition that no earlier document can satisfy fails before any change": {
			setup: func(w *world) {
				w.plugins["x"].plan = planFor(map[string]error{"a": precondition("no such device")})
			},
			options: Options{Mode: ModeApply, Text: things(named, named)},
			exit:    report.ExitPrecondition, outcome: report.RunFailed, outcomes: "Failed Skipped",
			errors: []string{"no such device"}, log: "plan a by x\nplan b by x",
		},
		"a final precondition fails before any change": {
			setup: func(w *world) {
				e := pluginv1.AsError(precondition("containerd is not installed"))
				e.Final = true
				w.plugins["x"].plan = planFor(map[string]error{"b": e})
			},
			options: Options{Mode: ModePlan, Text: things(named, named)},
			exit:    report.ExitPrecondition, outcome: report.RunFailed, outcomes: "Changed Failed",
			errors: []string{"containerd is not installed"},
		},
		"changes that an image defers satisfy no precondition": {
			setup: func(w *world) {
				w.plugins["x"].plan = func(name string, _ int) (pluginv1.Plan, error) {
					if name == "b" {
						return pluginv1.Plan{}, precondition("not ready")
					}
					return pluginv1.Plan{Changes: []pluginv1.Change{{ID: "live", Summary: "start", NeedsLive: true}}}, nil
				}
			},
			options: Options{Mode: ModeApply, Root: "/image", Text: things(named, named)},
			exit:    report.ExitPrecondition, outcome: report.RunFailed, outcomes: "Skipped Failed",
		},
		"a converged plan": {
			setup: func(w *world) {
				w.plugins["x"].plan = func(string, int) (pluginv1.Plan, error) { return pluginv1.Plan{}, nil }
			},
			options: Options{Mode: ModePlan, Text: things(named)},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Unchanged",
		},
		"validate accepts preconditions": {
			setup: func(w *world) {
				w.plugins["x"].plan = planFor(map[string]error{"a": precondition("later")})
			},
			options: Options{Mode: ModeValidate, Root: "/empty", Text: things(named)},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "",
		},
		"a report that cannot be saved ends the run before the first change": {
			setup:   func(w *world) { w.failAt = 1 },
			options: Options{Mode: ModeApply, Text: things(named)},
			exit:    report.ExitState, outcome: report.RunFailed, outcomes: "Skipped", log: " ",
		},
		"a report that cannot be saved stops the next change": {
			setup:   func(w *world) { w.failAt = 2 },
			options: Options{Mode: ModeApply, Text: things(named, named)},
			exit:    report.ExitState, outcome: report.RunFailed, outcomes: "Failed Skipped",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.run(t)
		})
	}
}
