package run

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

const named = "{provider: x}"

func invalid(fields ...string) error {
	e := &pluginv1.Error{Code: pluginv1.CodeInvalidConfig}
	for _, f := range fields {
		e.Violations = append(e.Violations, document.Violation{Field: f, Message: "is wrong"})
	}
	return e
}

func precondition(text string) error {
	return &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: text, Hint: "do something"}
}

func unsupported(text string) error {
	return &pluginv1.Error{Code: pluginv1.CodeUnsupported, Message: text}
}

// planFor answers for single documents and leaves the others their one change.
func planFor(answers map[string]error) func(string, int) (pluginv1.Plan, error) {
	return func(name string, _ int) (pluginv1.Plan, error) {
		if err, ok := answers[name]; ok {
			return pluginv1.Plan{}, err
		}
		return oneChange(), nil
	}
}

func TestExecuteOutcomes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		setup    func(w *world)
		options  Options
		exit     int
		outcome  report.Outcome
		outcomes string
		errors   []string // each must be part of the errors
		log      string   // if set, must be the whole log
		sentinel bool
	}{
		"applied in stream order, the sentinel last": {
			options: Options{Mode: ModeApply, Stream: things(named, named)},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Changed Changed", sentinel: true,
			log: "plan a by x\nplan b by x\nremove sentinel\napply a by x\napply b by x\nwrite sentinel",
		},
		"a configuration error anywhere ends the run before any change, and every error is told": {
			setup: func(w *world) {
				w.plugins["x"].plan = planFor(map[string]error{"b": invalid("spec.one", "spec.two"), "c": invalid("spec.three")})
			},
			options: Options{Mode: ModeApply, Stream: things(named, "{provider: x, one: 1,\n two: 2}", named)},
			exit:    report.ExitUsage, outcome: report.RunInvalid, outcomes: "Skipped Failed Failed",
			log: "plan a by x\nplan b by x\nplan c by x",
		},
		"a failed document stops the run": {
			setup: func(w *world) {
				w.plugins["x"].apply = func(context.Context, string, func(pluginv1.Event) error) (pluginv1.Finished, error) {
					return pluginv1.Finished{Error: pluginv1.AsError(precondition("not ready"))}, nil
				}
			},
			options: Options{Mode: ModeApply, Stream: things(named, named)},
			exit:    report.ExitPrecondition, outcome: report.RunFailed, outcomes: "Failed Skipped",
			errors: []string{"Precondition: not ready"},
		},
		"what the machine is not ready for is pending, and decided at its turn": {
			setup: func(w *world) {
				w.plugins["x"].plan = func(name string, calls int) (pluginv1.Plan, error) {
					if name == "b" && calls == 1 {
						return pluginv1.Plan{}, precondition("a is missing")
					}
					return oneChange(), nil
				}
			},
			options: Options{Mode: ModeApply, Stream: things(named, named)},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Changed Changed", sentinel: true,
		},
		"a precondition at its turn stops": {
			setup: func(w *world) {
				w.plugins["x"].plan = planFor(map[string]error{"b": precondition("the clock is wrong")})
			},
			options: Options{Mode: ModeApply, Stream: things(named, named, named)},
			exit:    report.ExitPrecondition, outcome: report.RunFailed, outcomes: "Changed Failed Skipped",
			errors: []string{"the clock is wrong"},
		},
		"an error of the configuration that shows after a change is a failure, not a refusal": {
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
			options: Options{Mode: ModeApply, Stream: things(named, named)},
			exit:    report.ExitFailed, outcome: report.RunFailed, outcomes: "Changed Failed",
		},
		"converged documents are not applied": {
			setup: func(w *world) {
				w.plugins["x"].plan = func(string, int) (pluginv1.Plan, error) { return pluginv1.Plan{}, nil }
			},
			options: Options{Mode: ModeApply, Stream: things(named, named)},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Unchanged Unchanged", sentinel: true,
			log: "plan a by x\nplan b by x\nwrite sentinel",
		},
		"a named provider that cannot express a field is refused": {
			setup: func(w *world) {
				w.plugins["x"].plan = planFor(map[string]error{"a": unsupported("no such field here")})
			},
			options: Options{Mode: ModeApply, Stream: things(named)},
			exit:    report.ExitPrecondition, outcome: report.RunInvalid, outcomes: "Failed",
			errors: []string{"Unsupported: no such field here"},
		},
		"a missing plugin": {
			options: Options{Mode: ModeApply, Stream: things("{provider: y}")},
			exit:    report.ExitPrecondition, outcome: report.RunFailed, outcomes: "Failed",
			errors: []string{"machineadm-thing-plugin-y"}, log: " ",
		},
		"RemoteConfig is not resolved yet, and says so": {
			options: Options{Mode: ModeApply, Stream: []byte("apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: RemoteConfig\nmetadata: {name: a}\nspec: {provider: s3}\n")},
			exit:    report.ExitUsage, outcome: report.RunInvalid, outcomes: "Failed",
			errors: []string{"does not resolve RemoteConfig"}, log: " ",
		},
		"an unserved kind of another group names both": {
			options: Options{Mode: ModeApply, Stream: []byte("apiVersion: example.com/v9\nkind: Thing\nmetadata: {name: a}\nspec: {provider: x}\n")},
			exit:    report.ExitPrecondition, outcome: report.RunInvalid, outcomes: "Failed",
			errors: []string{"machineadm-thing-plugin-x does not serve Thing of example.com/v9; it serves Thing of example.com/v1"},
		},
		"an unknown version of a kind of ours is an error of the configuration": {
			options: Options{Mode: ModeApply, Stream: []byte("apiVersion: machineadm.cluster.x-k8s.io/v7\nkind: Sysctl\nmetadata: {name: a}\nspec: {provider: x}\n")},
			exit:    report.ExitUsage, outcome: report.RunInvalid, outcomes: "Failed", errors: []string{"v7"},
		},
		"a document for another machine is not applicable": {
			options: Options{Mode: ModeApply, Stream: []byte("apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, when: {os: [windows]}}\nspec: {provider: x}\n")},
			exit:    report.ExitPrecondition, outcome: report.RunFailed, outcomes: "NotApplicable", log: " ",
			errors: []string{"no document of the stream applies to this machine (os linux, distribution debian, architecture amd64)"},
		},
		"a phase that is not picked is deferred, and there is no sentinel": {
			options: Options{Mode: ModeApply, Phase: pluginv1.PhaseProvisioning, Stream: things(named)},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Deferred/phase", log: " ",
		},
		"an image leaves what needs the live machine, and no sentinel": {
			setup: func(w *world) {
				w.plugins["x"].plan = func(string, int) (pluginv1.Plan, error) {
					return pluginv1.Plan{Changes: []pluginv1.Change{{ID: "live", Summary: "start", NeedsLive: true}}}, nil
				}
			},
			options: Options{Mode: ModeApply, Root: "/image", Stream: things(named)},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Deferred/live", log: "plan a by x",
		},
		"a secret does not go into an image": {
			options: Options{Mode: ModeApply, Root: "/image", Stream: things("{provider: x, auth: [{password: {value: s3cr3t}}]}")},
			exit:    report.ExitUsage, outcome: report.RunInvalid, outcomes: "Failed", log: " ",
			errors: []string{"a secret would be written into an image"},
		},
		"unless it may": {
			options: Options{Mode: ModeApply, Root: "/image", AllowSecrets: true, Stream: things("{provider: x, password: {value: s3cr3t}}")},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Changed",
		},
		"a crash of the plugin": {
			setup: func(w *world) {
				w.plugins["x"].apply = func(context.Context, string, func(pluginv1.Event) error) (pluginv1.Finished, error) {
					return pluginv1.Finished{}, fmt.Errorf("%w: gone", pluginv1.ErrCrashed)
				}
			},
			options: Options{Mode: ModeApply, Stream: things(named)},
			exit:    report.ExitFailed, outcome: report.RunFailed, outcomes: "Failed", errors: []string{"Crashed: the plugin"},
		},
		"a reboot before the next document": {
			setup: func(w *world) {
				w.plugins["x"].apply = func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
					return pluginv1.Finished{}, change(send, pluginv1.Change{ID: "a", Summary: "do a", Reboot: pluginv1.RebootBeforeNext})
				}
			},
			options: Options{Mode: ModeApply, Stream: things(named, named)},
			exit:    report.ExitReboot, outcome: report.RunRebootRequired, outcomes: "RebootRequired Skipped",
		},
		"a reboot after the run, asked for while a change runs": {
			setup: func(w *world) {
				w.plugins["x"].apply = func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
					if err := change(send, pluginv1.Change{ID: "a", Summary: "do a"}); err != nil {
						return pluginv1.Finished{}, err
					}
					return pluginv1.Finished{}, send(pluginv1.Progress{ID: "a", Reboot: pluginv1.RebootAfterRun})
				}
			},
			options: Options{Mode: ModeApply, Stream: things(named, named)},
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
			options: Options{Mode: ModeApply, Stream: things(named), Reboot: true},
			exit:    report.ExitDeadline, outcome: report.RunFailed, outcomes: "Changed",
			errors: []string{"the stream asks for reboot 4; at most 3 are made"},
		},
		"retries end": {
			setup: func(w *world) {
				w.plugins["x"].plan = planFor(map[string]error{"a": &pluginv1.Error{Code: pluginv1.CodeRetry, Message: "busy"}})
			},
			options: Options{Mode: ModeApply, Stream: things(named)},
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
			options: Options{Mode: ModeApply, Stream: things(named)},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Changed", sentinel: true,
		},
		"a plan that has something to do": {
			options: Options{Mode: ModePlan, Stream: things(named)},
			exit:    report.ExitDiffers, outcome: report.RunSucceeded, outcomes: "Changed", log: "plan a by x",
		},
		"a plan that cannot be decided, because an earlier document may cure it": {
			setup: func(w *world) {
				w.plugins["x"].plan = planFor(map[string]error{"b": precondition("later")})
			},
			options: Options{Mode: ModePlan, Stream: things(named, named)},
			exit:    report.ExitDiffers, outcome: report.RunSucceeded, outcomes: "Changed ",
		},
		"a precondition that no earlier document can cure fails before any change": {
			setup: func(w *world) {
				w.plugins["x"].plan = planFor(map[string]error{"a": precondition("no such device")})
			},
			options: Options{Mode: ModeApply, Stream: things(named, named)},
			exit:    report.ExitPrecondition, outcome: report.RunFailed, outcomes: "Failed Skipped",
			errors: []string{"no such device"}, log: "plan a by x\nplan b by x",
		},
		"a precondition that the plugin calls final fails before any change": {
			setup: func(w *world) {
				e := pluginv1.AsError(precondition("containerd is not installed"))
				e.Final = true
				w.plugins["x"].plan = planFor(map[string]error{"b": e})
			},
			options: Options{Mode: ModePlan, Stream: things(named, named)},
			exit:    report.ExitPrecondition, outcome: report.RunFailed, outcomes: "Changed Failed",
			errors: []string{"containerd is not installed"},
		},
		"what only live changes of an image precede is not cured in it": {
			setup: func(w *world) {
				w.plugins["x"].plan = func(name string, _ int) (pluginv1.Plan, error) {
					if name == "b" {
						return pluginv1.Plan{}, precondition("not ready")
					}
					return pluginv1.Plan{Changes: []pluginv1.Change{{ID: "live", Summary: "start", NeedsLive: true}}}, nil
				}
			},
			options: Options{Mode: ModeApply, Root: "/image", Stream: things(named, named)},
			exit:    report.ExitPrecondition, outcome: report.RunFailed, outcomes: "Skipped Failed",
		},
		"a document behind a change is applied without another planning": {
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
			options: Options{Mode: ModeApply, Stream: things(named, named)},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Changed Unchanged", sentinel: true,
			log: "plan a by x\nplan b by x\nremove sentinel\napply a by x\napply b by x\nwrite sentinel",
		},
		"a converged plan": {
			setup: func(w *world) {
				w.plugins["x"].plan = func(string, int) (pluginv1.Plan, error) { return pluginv1.Plan{}, nil }
			},
			options: Options{Mode: ModePlan, Stream: things(named)},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Unchanged",
		},
		"validate takes preconditions for fine": {
			setup: func(w *world) {
				w.plugins["x"].plan = planFor(map[string]error{"a": precondition("later")})
			},
			options: Options{Mode: ModeValidate, Root: "/empty", Stream: things(named)},
			exit:    report.ExitOK, outcome: report.RunSucceeded, outcomes: "Skipped",
		},
		"a report that cannot be kept ends the run before the first change": {
			setup:   func(w *world) { w.failAt = 1 },
			options: Options{Mode: ModeApply, Stream: things(named)},
			exit:    report.ExitState, outcome: report.RunFailed, outcomes: "Skipped", log: " ",
		},
		"a report that cannot be kept any more stops the change that would follow": {
			setup:   func(w *world) { w.failAt = 2 },
			options: Options{Mode: ModeApply, Stream: things(named, named)},
			exit:    report.ExitState, outcome: report.RunFailed, outcomes: "Failed Skipped",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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
		})
	}
}

func TestEveryErrorOfTheStreamHasItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").plan = planFor(map[string]error{"b": invalid("spec.one", "spec.two")})
	got := w.execute(Options{Mode: ModeApply, Stream: things(named, "{provider: x, one: 1,\n  two: 2}")})
	var places []string
	for _, e := range got.Errors {
		places = append(places, fmt.Sprintf("%s:%d:%d %s %s", e.File, e.Line, e.Column, e.Document, e.Field))
	}
	want := "node.yaml:10:21 Thing/b spec.one\nnode.yaml:11:3 Thing/b spec.two"
	if strings.Join(places, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(places, "\n"), want)
	}
}

func TestChoiceOfProvider(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		setup   func(w *world)
		options Options
		exit    int
		by      string
		errors  []string
		bound   string
	}{
		"the active one": {
			setup: func(w *world) { w.add("x"); w.add("y").fitness = pluginv1.FitnessActive },
			by:    "y", bound: "y",
		},
		"the only one that fits": {
			setup: func(w *world) { w.add("x"); w.add("y").fitness = pluginv1.FitnessUnsupported },
			by:    "x", bound: "x",
		},
		"a tie names both": {
			setup: func(w *world) { w.add("x"); w.add("y") },
			exit:  report.ExitPrecondition, errors: []string{"machineadm-thing-plugin-x and machineadm-thing-plugin-y"},
		},
		"the vendor's default": {
			setup:   func(w *world) { w.add("x"); w.add("y").fitness = pluginv1.FitnessActive },
			options: Options{Defaults: map[string]string{"Thing": "x"}}, by: "x", bound: "x",
		},
		"an earlier choice wins over the default": {
			setup:   func(w *world) { w.add("x"); w.add("y"); w.choices["Thing/a"] = "y" },
			options: Options{Defaults: map[string]string{"Thing": "x"}}, by: "y", bound: "y",
		},
		"the choice of the bake wins over the default": {
			setup:   func(w *world) { w.add("x"); w.add("y") },
			options: Options{Defaults: map[string]string{"Thing": "x"}, ImageChoices: map[string]string{"Thing/a": "y"}}, by: "y", bound: "y",
		},
		"this machine's choice wins over the bake's, and that of another document counts for nothing": {
			setup:   func(w *world) { w.add("x"); w.add("y"); w.choices["Thing/a"] = "x"; w.choices["Thing/b"] = "y" },
			options: Options{ImageChoices: map[string]string{"Thing/a": "y"}}, by: "x", bound: "x",
		},
		"one that cannot express a field makes way": {
			setup: func(w *world) {
				w.add("x")
				y := w.add("y")
				y.fitness, y.plan = pluginv1.FitnessActive, planFor(map[string]error{"a": unsupported("not here")})
			},
			by: "x", bound: "x",
		},
		"every refusal is listed": {
			setup: func(w *world) {
				w.add("x").plan = planFor(map[string]error{"a": unsupported("no pools")})
				y := w.add("y")
				y.fitness, y.plan = pluginv1.FitnessActive, planFor(map[string]error{"a": unsupported("no keys")})
			},
			exit: report.ExitPrecondition, errors: []string{"y: no keys; x: no pools"},
		},
		"none is installed": {
			setup: func(*world) {},
			exit:  report.ExitPrecondition, errors: []string{"no plugin for Thing is installed"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tt.setup(w)
			tt.options.Mode, tt.options.Stream = ModeApply, things("{}")
			got := w.execute(tt.options)
			if got.ExitCode != tt.exit {
				t.Errorf("exit %d, want %d; errors:\n%s", got.ExitCode, tt.exit, errorsOf(got))
			}
			if by := got.Documents[0].Provider; by != tt.by {
				t.Errorf("provider %q, want %q", by, tt.by)
			}
			for _, want := range tt.errors {
				if !strings.Contains(errorsOf(got), want) {
					t.Errorf("errors:\n%s\nwant %q among them", errorsOf(got), want)
				}
			}
			if tt.bound != "" && w.choices["Thing/a"] != tt.bound {
				t.Errorf("kept the choice %q, want %q", w.choices["Thing/a"], tt.bound)
			}
		})
	}
}

func TestValidateAsksEveryProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").plan = planFor(map[string]error{"a": invalid("spec.one")})
	w.add("y")
	if got := w.execute(Options{Mode: ModeValidate, Root: "/empty", Stream: things("{one: 1}")}); got.ExitCode != report.ExitOK {
		t.Errorf("one provider takes it, but exit %d; errors:\n%s", got.ExitCode, errorsOf(got))
	}
	w.plugins["y"].plan = planFor(map[string]error{"a": invalid("spec.one")})
	if got := w.execute(Options{Mode: ModeValidate, Root: "/empty", Stream: things("{one: 1}")}); got.ExitCode != report.ExitUsage {
		t.Errorf("every provider refuses it, but exit %d; errors:\n%s", got.ExitCode, errorsOf(got))
	}
}

// TestStopIsAskedAgain: a Stop that reaches the plugin before the call that it is meant for stops nothing.
func TestStopIsAskedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	interrupt := make(chan struct{})
	p := w.add("x")
	p.deaf = 1
	p.apply = func(_ context.Context, _ string, _ func(pluginv1.Event) error) (pluginv1.Finished, error) {
		close(interrupt)
		<-p.stopped
		return pluginv1.Finished{Stopped: true}, nil
	}
	got := w.execute(Options{Mode: ModeApply, Stream: things(named), Interrupt: interrupt, Grace: 20 * time.Second})
	if got.ExitCode != report.ExitInterrupted || strings.Contains(w.lines(), "kill") {
		t.Errorf("exit %d\n%s", got.ExitCode, w.lines())
	}
}

func TestInterruptFinishesTheChangeInHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	interrupt := make(chan struct{})
	p := w.add("x")
	p.apply = func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
		if err := send(pluginv1.Started{Change: pluginv1.Change{ID: "a", Summary: "do a"}}); err != nil {
			return pluginv1.Finished{}, err
		}
		close(interrupt)
		<-p.stopped
		return pluginv1.Finished{Stopped: true}, send(pluginv1.Changed{ID: "a"})
	}
	got := w.execute(Options{Mode: ModeApply, Stream: things(named, named), Interrupt: interrupt})
	if got.ExitCode != report.ExitInterrupted || got.Outcome != report.RunInterrupted || outcomes(got) != "Failed Skipped" {
		t.Errorf("exit %d %s [%s]", got.ExitCode, got.Outcome, outcomes(got))
	}
	if c := got.Documents[0].Changes; len(c) != 1 || c[0].Outcome != report.Changed {
		t.Errorf("the change in hand is %+v, want it Changed", c)
	}
	if strings.Contains(w.lines(), "kill") {
		t.Errorf("a plugin that stops in order is not killed:\n%s", w.lines())
	}
}

func TestPluginThatDoesNotStopIsKilled(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"after an interruption": {Interrupt: closed()},
		"after the deadline of the document": {
			Stream: []byte("apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, timeout: 20ms}\nspec: {provider: x}\n"),
		},
		"after the deadline of the run": {Timeout: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			interrupt := make(chan struct{})
			p := w.add("x")
			p.apply = func(ctx context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
				if err := send(pluginv1.Started{Change: pluginv1.Change{ID: "a", Summary: "do a"}}); err != nil {
					return pluginv1.Finished{}, err
				}
				if o.Interrupt != nil {
					close(interrupt)
				}
				<-p.killed
				return pluginv1.Finished{}, ctx.Err()
			}
			want := report.ExitDeadline
			if o.Interrupt != nil {
				o.Interrupt, want = interrupt, report.ExitInterrupted
			}
			if o.Stream == nil {
				o.Stream = things(named)
			}
			o.Mode, o.Grace = ModeApply, 30*time.Millisecond
			got := w.execute(o)
			if got.ExitCode != want {
				t.Errorf("exit %d, want %d; errors:\n%s", got.ExitCode, want, errorsOf(got))
			}
			log := w.lines()
			if stop, kill := strings.Index(log, "stop x"), strings.Index(log, "kill x"); stop < 0 || kill < stop {
				t.Errorf("want stop, then kill:\n%s", log)
			}
		})
	}
}

func closed() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}
