package run

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

type applyFunc = func(context.Context, string, func(pluginv1.Event) error) (pluginv1.Finished, error)

// applyEnds is an Apply that begins a change and then ends like this.
func applyEnds(f pluginv1.Finished, err error) applyFunc {
	return func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
		if err := send(pluginv1.Started{Change: oneChange().Changes[0]}); err != nil {
			return pluginv1.Finished{}, err
		}
		return f, err
	}
}

func reboots(r pluginv1.Reboot) applyFunc {
	return func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
		return pluginv1.Finished{}, change(send, pluginv1.Change{ID: "a", Summary: "do a", Reboot: r})
	}
}

func TestPlanRemembersWhatApplyDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.add("x")
	planned := map[string]bool{}
	p.onPlan = func(_ context.Context, r pluginv1.Request) error { planned[r.StateDir] = true; return nil }
	w.execute(Options{Mode: ModeApply, Stream: things(named)})
	if want := "/state/machineadm-thing-plugin-x/Thing-a"; p.stateDir != want || len(planned) != 1 || !planned[want] {
		t.Errorf("Apply had the state directory %q, Plan %v, want %q", p.stateDir, planned, want)
	}
	planned = map[string]bool{}
	w.execute(Options{Mode: ModePlan, Stream: things(named)})
	if len(planned) != 1 || !planned["/state/machineadm-thing-plugin-x/Thing-a"] {
		t.Errorf("a plan looks at what an apply kept, but had %v", planned)
	}
}

func TestEveryRefusalIsTold(t *testing.T) {
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
		"a missing plugin and an error of the configuration, which counts": {
			stream: things("{provider: y}", "{provider: x, bad: 1}"),
			exit:   report.ExitUsage, outcome: report.RunInvalid, outcomes: "Failed Failed",
			errors: []string{"machineadm-thing-plugin-y", "InvalidConfig: is wrong"},
		},
		"a document that is broken, and one without a plugin": {
			stream: append(things("{provider: y}"), "---\nkind: [\n"...),
			exit:   report.ExitUsage, outcome: report.RunInvalid, outcomes: "Failed",
			errors: []string{"machineadm-thing-plugin-y", "InvalidConfig"},
		},
		"what no provider can do, and an error of the configuration": {
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
			got := w.execute(Options{Mode: ModeApply, Stream: tt.stream})
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

func TestAllViolationsAtADocumentsTurn(t *testing.T) {
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
	got := w.execute(Options{Mode: ModeApply, Stream: things(named, named)})
	var fields []string
	for _, e := range got.Errors {
		fields = append(fields, e.Field)
	}
	if got.ExitCode != report.ExitFailed || strings.Join(fields, " ") != "spec.one spec.two spec.three" {
		t.Errorf("exit %d, fields %q", got.ExitCode, fields)
	}
}

func TestReboots(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		asks     pluginv1.Reboot
		options  Options
		exit     int
		outcomes string
		counted  int
	}{
		"before the next, of which there is none":   {asks: pluginv1.RebootBeforeNext, options: Options{Reboot: true}, exit: report.ExitReboot, outcomes: "Changed", counted: 2},
		"not made by this run, and so not counted":  {asks: pluginv1.RebootAfterRun, exit: report.ExitReboot, outcomes: "Changed", counted: 1},
		"an image has nothing to reboot":            {asks: pluginv1.RebootBeforeNext, options: Options{Root: "/image"}, outcomes: "Changed", counted: 1},
		"success without --reboot ends the count":   {asks: pluginv1.RebootNone, outcomes: "Changed"},
		"success with --reboot ends the count, too": {asks: pluginv1.RebootNone, options: Options{Reboot: true}, outcomes: "Changed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.reboots = 1
			w.add("x").apply = reboots(tt.asks)
			tt.options.Mode, tt.options.Stream = ModeApply, things(named)
			got := w.execute(tt.options)
			if got.ExitCode != tt.exit || outcomes(got) != tt.outcomes || w.reboots != tt.counted {
				t.Errorf("exit %d [%s], %d reboots; want %d [%s], %d; errors:\n%s", got.ExitCode, outcomes(got), w.reboots,
					tt.exit, tt.outcomes, tt.counted, errorsOf(got))
			}
		})
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	elsewhere := "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, when: {os: [windows]}}\nspec: {provider: %s}\n"
	tests := map[string]struct {
		setup    func(w *world)
		stream   []byte
		exit     int
		outcomes string
	}{
		"another platform is no error": {
			setup:  func(w *world) { w.plugins["x"].plan = planFor(map[string]error{"a": unsupported("not on Linux")}) },
			stream: things(named), outcomes: "Skipped",
		},
		"another platform is no error without a provider either": {
			setup:  func(w *world) { w.plugins["x"].plan = planFor(map[string]error{"a": unsupported("not on Linux")}) },
			stream: things("{}"), outcomes: "Skipped",
		},
		"a field that the named provider cannot express is one": {
			setup: func(w *world) {
				e := pluginv1.AsError(invalid("spec.pools"))
				e.Code = pluginv1.CodeUnsupported
				w.plugins["x"].plan = planFor(map[string]error{"a": e})
			},
			stream: things(named), exit: report.ExitPrecondition, outcomes: "Failed",
		},
		"a provider that does not fit this machine is asked": {
			setup: func(w *world) {
				w.plugins["x"].fitness = pluginv1.FitnessUnsupported
				w.plugins["x"].plan = planFor(map[string]error{"a": invalid("spec.one")})
			},
			stream: things("{}"), exit: report.ExitUsage, outcomes: "Failed",
		},
		"a document for another machine is read, too": {
			setup:  func(w *world) { w.plugins["x"].plan = planFor(map[string]error{"a": invalid("spec.one")}) },
			stream: fmt.Appendf(nil, elsewhere, "x"), exit: report.ExitUsage, outcomes: "Failed",
		},
		"unless its plugin is not here": {
			stream: fmt.Appendf(nil, elsewhere, "y"), outcomes: "NotApplicable",
		},
		"a missing plugin leaves the question open": {
			stream: things("{provider: y}"), exit: report.ExitPrecondition, outcomes: "Failed",
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
			got := w.execute(Options{Mode: ModeValidate, Root: "/empty", Stream: tt.stream})
			if got.ExitCode != tt.exit || outcomes(got) != tt.outcomes {
				t.Errorf("exit %d [%s], want %d [%s]; errors:\n%s", got.ExitCode, outcomes(got), tt.exit, tt.outcomes, errorsOf(got))
			}
		})
	}
}

func TestChangesOfADocumentThatFailed(t *testing.T) {
	t.Parallel()
	failed := pluginv1.Finished{Error: pluginv1.AsError(precondition("no"))}
	for name, tt := range map[string]struct {
		apply applyFunc
		want  string
	}{
		"the plugin says so":           {applyEnds(failed, nil), "a Failed"},
		"its end is not known":         {applyEnds(pluginv1.Finished{}, pluginv1.ErrCrashed), "a Interrupted"},
		"each try of one is told once": {retryThen(applyEnds(failed, nil)), "a Failed"},
		"a try that succeeds counts":   {retryThen(reboots(pluginv1.RebootNone)), "a Changed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.add("x").apply = tt.apply
			got := w.execute(Options{Mode: ModeApply, Stream: things(named)})
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

// retryThen begins the change and answers Retry, and does the rest at the second try.
func retryThen(rest applyFunc) applyFunc {
	tries := 0
	return func(ctx context.Context, name string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
		if tries++; tries == 1 {
			return applyEnds(pluginv1.Finished{Error: &pluginv1.Error{Code: pluginv1.CodeRetry, Message: "busy"}}, nil)(ctx, name, send)
		}
		return rest(ctx, name, send)
	}
}

func TestLastWordsThatAreNotKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").apply = func(context.Context, string, func(pluginv1.Event) error) (pluginv1.Finished, error) {
		w.fail = true
		return pluginv1.Finished{Error: pluginv1.AsError(precondition("not ready"))}, nil
	}
	got := w.execute(Options{Mode: ModeApply, Stream: things(named)})
	if got.ExitCode != report.ExitPrecondition || !strings.Contains(errorsOf(got), "State: no space left on device") {
		t.Errorf("exit %d; errors:\n%s", got.ExitCode, errorsOf(got))
	}
}

func TestSuccessThatIsNotKeptIsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").plan = func(string, int) (pluginv1.Plan, error) {
		w.fail = true
		return pluginv1.Plan{}, nil
	}
	got := w.execute(Options{Mode: ModeApply, Stream: things(named)})
	if got.ExitCode != report.ExitState || w.sentinel {
		t.Errorf("exit %d, sentinel %v; errors:\n%s", got.ExitCode, w.sentinel, errorsOf(got))
	}
}

func TestProviderIsWhatTheFileIsCalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").named = "Something Else"
	got := w.execute(Options{Mode: ModeApply, Stream: things("{}")})
	if got.Documents[0].Provider != "x" || w.choices["Thing/a"] != "x" {
		t.Errorf("provider %q, kept %q", got.Documents[0].Provider, w.choices["Thing/a"])
	}
}

func TestErrorsSayWhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").apply = applyEnds(pluginv1.Finished{Error: pluginv1.AsError(precondition("not ready"))}, nil)
	got := w.execute(Options{Mode: ModeApply, Stream: things(named)})
	if e := got.Errors[got.Documents[0].Errors[0]]; e.File != "node.yaml" || e.Line != 2 || e.Hint == "" {
		t.Errorf("error %+v", e)
	}
	got = w.execute(Options{Mode: ModeApply, Stream: things("{provider: y}")})
	if e := got.Errors[got.Documents[0].Errors[0]]; e.Line != 5 || e.Field != "spec.provider" || e.Hint == "" {
		t.Errorf("error %+v", e)
	}
}
