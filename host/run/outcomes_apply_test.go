package run

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// TestApplyOutcomes: the turns of documents.
func TestApplyOutcomes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]outcomeTest{
		"applied in stream order, the sentinel last": {
			options: Options{Mode: ModeApply, Text: things(named, named)},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Changed Changed", sentinel: true,
			log: "plan a by x\nplan b by x\nremove sentinel\napply a by x\napply b by x\nwrite sentinel",
		},
		"a failed document stops the run": {
			setup: func(w *world) {
				w.plugins["x"].apply = func(context.Context, string, func(pluginv1.Event) error) (pluginv1.Finished, error) {
					return pluginv1.Finished{Error: pluginv1.AsError(precondition("not ready"))}, nil
				}
			},
			options: Options{Mode: ModeApply, Text: things(named, named)},
			exit:    report.ExitPrecondition, outcome: report.RunFailed, outcomes: "Failed Skipped",
			errors: []string{"Precondition: not ready"},
		},
		"a document with a precondition is pending and planned again at its turn": {
			setup: func(w *world) {
				w.plugins["x"].plan = func(name string, calls int) (pluginv1.Plan, error) {
					if name == "b" && calls == 1 {
						return pluginv1.Plan{}, precondition("a is missing")
					}
					return oneChange(), nil
				}
			},
			options: Options{Mode: ModeApply, Text: things(named, named)},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Changed Changed", sentinel: true,
		},
		"a precondition at a document's turn ends the run": {
			setup: func(w *world) {
				w.plugins["x"].plan = planFor(map[string]error{"b": precondition("the clock is wrong")})
			},
			options: Options{Mode: ModeApply, Text: things(named, named, named)},
			exit:    report.ExitPrecondition, outcome: report.RunFailed, outcomes: "Changed Failed Skipped",
			errors: []string{"the clock is wrong"},
		},
		"a configuration error after a change is a failure": {
			setup: func(w *world) {
				w.plugins["x"].plan = func(name string, calls int) (pluginv1.Plan, error) {
					switch {
					case name == "b" && calls == 1:
						return pluginv1.Plan{}, precondition("not yet")
					case name == "b":
						return pluginv1.Plan{}, invalid("spec.late")
					}
					return oneChange(), nil
				}
			},
			options: Options{Mode: ModeApply, Text: things(named, named)},
			exit:    report.ExitFailed, outcome: report.RunFailed, outcomes: "Changed Failed",
		},
		"converged documents are not applied": {
			setup: func(w *world) {
				w.plugins["x"].plan = func(string, int) (pluginv1.Plan, error) { return pluginv1.Plan{}, nil }
			},
			options: Options{Mode: ModeApply, Text: things(named, named)},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Unchanged Unchanged", sentinel: true,
			log: "plan a by x\nplan b by x\nwrite sentinel",
		},
		"a crash of the plugin": {
			setup: func(w *world) {
				w.plugins["x"].apply = func(context.Context, string, func(pluginv1.Event) error) (pluginv1.Finished, error) {
					return pluginv1.Finished{}, fmt.Errorf("%w: gone", pluginv1.ErrCrashed)
				}
			},
			options: Options{Mode: ModeApply, Text: things(named)},
			exit:    report.ExitFailed, outcome: report.RunFailed, outcomes: "Failed", errors: []string{"Crashed: the plugin"},
		},
		"a reboot before the next document": {
			setup: func(w *world) {
				w.plugins["x"].apply = func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
					return pluginv1.Finished{}, change(send, pluginv1.Change{ID: "a", Summary: "do a", Reboot: pluginv1.RebootBeforeNext})
				}
			},
			options: Options{Mode: ModeApply, Text: things(named, named)},
			exit:    report.ExitReboot, outcome: report.RunRebootRequired, outcomes: "RebootRequired Skipped",
		},
		"a reboot after the run, requested during a change": {
			setup: func(w *world) {
				w.plugins["x"].apply = func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
					if err := change(send, pluginv1.Change{ID: "a", Summary: "do a"}); err != nil {
						return pluginv1.Finished{}, err
					}
					return pluginv1.Finished{}, send(pluginv1.Progress{ID: "a", Reboot: pluginv1.RebootAfterRun})
				}
			},
			options: Options{Mode: ModeApply, Text: things(named, named)},
			exit:    report.ExitReboot, outcome: report.RunRebootRequired, outcomes: "Changed Changed",
		},
		"reboots are counted, and end": {
			setup: func(w *world) {
				w.reboots = MaxReboots
				w.plugins["x"].plan = func(string, int) (pluginv1.Plan, error) {
					return pluginv1.Plan{Changes: []pluginv1.Change{{ID: "a", Summary: "do a"}}}, nil
				}
				w.plugins["x"].apply = func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
					return pluginv1.Finished{}, change(send, pluginv1.Change{ID: "a", Summary: "do a", Reboot: pluginv1.RebootAfterRun})
				}
			},
			options: Options{Mode: ModeApply, Text: things(named), Reboot: true},
			exit:    report.ExitDeadline, outcome: report.RunFailed, outcomes: "Changed",
			errors: []string{"the stream asks for reboot 4; at most 3 are made"},
		},
		"retries end": {
			setup: func(w *world) {
				w.plugins["x"].plan = planFor(map[string]error{"a": &pluginv1.Error{Code: pluginv1.CodeRetry, Message: "busy"}})
			},
			options: Options{Mode: ModeApply, Text: things(named)},
			exit:    report.ExitDeadline, outcome: report.RunFailed, outcomes: "Failed", errors: []string{"Retry: busy"},
		},
		"a retry of Apply that succeeds": {
			setup: func(w *world) {
				tries := 0
				w.plugins["x"].apply = func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
					if tries++; tries < 3 {
						return pluginv1.Finished{Error: &pluginv1.Error{Code: pluginv1.CodeRetry, Message: "busy"}}, nil
					}
					return pluginv1.Finished{}, change(send, oneChange().Changes[0])
				}
			},
			options: Options{Mode: ModeApply, Text: things(named)},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Changed", sentinel: true,
		},
		"a document after a change is applied without another plan": {
			setup: func(w *world) {
				w.plugins["x"].plan = func(name string, _ int) (pluginv1.Plan, error) {
					if name == "b" {
						return pluginv1.Plan{}, nil
					}
					return oneChange(), nil
				}
				w.plugins["x"].apply = func(_ context.Context, name string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
					if name == "b" {
						return pluginv1.Finished{}, nil
					}
					return pluginv1.Finished{}, change(send, oneChange().Changes[0])
				}
			},
			options: Options{Mode: ModeApply, Text: things(named, named)},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Changed Unchanged", sentinel: true,
			log: "plan a by x\nplan b by x\nremove sentinel\napply a by x\napply b by x\nwrite sentinel",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tt.run(t)
			})
		})
	}
}
