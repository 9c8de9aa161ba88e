package run

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/run/values"
)

func TestRanked(t *testing.T) {
	t.Parallel()
	provider := func(name string, f pluginv1.Fitness, distributions ...string) *values.Candidate {
		return &values.Candidate{Provider: name, Plugin: &launch.Plugin{
			Description: pluginv1.Description{Fitness: f, Distributions: distributions},
		}}
	}
	mint := target.Target{OS: "linux", Distribution: "linuxmint", Like: []string{"ubuntu", "debian"}}
	for want, all := range map[string][]*values.Candidate{
		"active installed absent": {
			provider("absent", pluginv1.FitnessAbsent, "linuxmint"), provider("active", pluginv1.FitnessActive), provider("installed", pluginv1.FitnessInstalled, "linuxmint"),
		},
		"own first second generic foreign": {
			provider("foreign", pluginv1.FitnessActive, "fedora"), provider("generic", pluginv1.FitnessActive), provider("second", pluginv1.FitnessActive, "debian"),
			provider("own", pluginv1.FitnessActive, "fedora", "linuxmint"), provider("first", pluginv1.FitnessActive, "ubuntu"),
		},
		"a=b c": {
			provider("a", pluginv1.FitnessActive, "debian"), provider("c", pluginv1.FitnessInstalled, "debian"), provider("b", pluginv1.FitnessActive, "debian", "fedora"),
		},
	} {
		var got []string
		for _, rank := range values.Ranked(all, mint) {
			var names []string
			for _, c := range rank {
				names = append(names, c.Provider)
			}
			got = append(got, strings.Join(names, "="))
		}
		assert.Equal(t, want, strings.Join(got, " "))
	}
}

func TestNamedProviderThatDoesNotServeTheMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").fitness = pluginv1.FitnessUnsupported
	got := w.execute(Options{Mode: ModeApply, Text: things(named)})
	assert.Equal(t, report.ExitPrecondition, got.ExitCode)
	assert.Equal(t, "spec.provider", got.Errors[0].Field)
	assert.Contains(t, got.Errors[0].Message, "the provider x does not serve this machine: as the test says")
	assert.Empty(t, w.lines(), "it was planned")
}

func TestProviderIsNamedByItsFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").named = "Something Else"
	got := w.execute(Options{Mode: ModeApply, Text: things("{}")})
	if got.Documents[0].Provider != "x" || w.choices["Thing/a"] != "x" {
		t.Errorf("provider %q, kept %q", got.Documents[0].Provider, w.choices["Thing/a"])
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
		"the only one that serves the machine": {
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
		"this machine's choice wins over the bake's and over that of another document": {
			setup:   func(w *world) { w.add("x"); w.add("y"); w.choices["Thing/a"] = "x"; w.choices["Thing/b"] = "y" },
			options: Options{ImageChoices: map[string]string{"Thing/a": "y"}}, by: "x", bound: "x",
		},
		"the next one after a refusal": {
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
		"the next one after a providerConfig of another": {
			setup: func(w *world) {
				w.add("x")
				y := w.add("y")
				y.fitness, y.plan = pluginv1.FitnessActive, planFor(map[string]error{"a": invalid("spec.providerConfig.drift")})
			},
			by: "x", bound: "x",
		},
		"the first error of a providerConfig that none has": {
			setup: func(w *world) {
				w.add("x").plan = planFor(map[string]error{"a": unsupported("no keys")})
				y := w.add("y")
				y.fitness, y.plan = pluginv1.FitnessActive, planFor(map[string]error{"a": invalid("spec.providerConfig.drift")})
			},
			exit: report.ExitUsage, by: "y", errors: []string{"spec.providerConfig.drift"},
		},
		"an error beside the one of the providerConfig": {
			setup: func(w *world) {
				w.add("x")
				y := w.add("y")
				y.fitness, y.plan = pluginv1.FitnessActive, planFor(map[string]error{"a": invalid("spec.providerConfig.drift", "spec.servers")})
			},
			exit: report.ExitUsage, by: "y", errors: []string{"spec.servers"},
		},
		"the next one cannot either": {
			setup: func(w *world) {
				w.add("x").plan = planFor(map[string]error{"a": &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "not installed", Final: true}})
				y := w.add("y")
				y.fitness, y.plan = pluginv1.FitnessActive, planFor(map[string]error{"a": unsupported("no prefer")})
			},
			exit: report.ExitPrecondition, by: "x", errors: []string{"not installed", "warning: a provider that fits better was passed over: y: no prefer"},
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
			tt.options.Mode, tt.options.Text = ModeApply, things("{}")
			got := w.execute(tt.options)
			if got.ExitCode != tt.exit {
				t.Errorf("exit %d, want %d; errors:\n%s", got.ExitCode, tt.exit, errorsOf(got))
			}
			if by := got.Documents[0].Provider; by != tt.by {
				t.Errorf("provider %q, want %q", by, tt.by)
			}
			said := errorsOf(got)
			for _, e := range got.Errors {
				said += "\n" + e.Field
			}
			for _, warning := range got.Documents[0].Warnings {
				said += "\nwarning: " + warning
			}
			for _, want := range tt.errors {
				if !strings.Contains(said, want) {
					t.Errorf("errors:\n%s\nwant %q among them", said, want)
				}
			}
			if tt.bound != "" && w.choices["Thing/a"] != tt.bound {
				t.Errorf("kept the choice %q, want %q", w.choices["Thing/a"], tt.bound)
			}
		})
	}
}

// TestChoicesOfAnImage: a run that changes nothing in an image saves no choice there, and one that could not save them changes nothing.
func TestChoicesOfAnImage(t *testing.T) {
	t.Parallel()
	live := pluginv1.Change{ID: "live", Summary: "start", NeedsLive: true}
	for name, tt := range map[string]struct {
		root    string
		changes map[string][]pluginv1.Change // by document
		kept    []string
	}{
		"nothing to do":                   {"/image", nil, nil},
		"nothing before first boot":       {"/image", map[string][]pluginv1.Change{"a": {live}}, nil},
		"the second changes":              {"/image", map[string][]pluginv1.Change{"b": oneChange().Changes}, []string{"Thing/a", "Thing/b", "Thing/c"}},
		"nothing to do on a live machine": {"", nil, []string{"Thing/a", "Thing/b", "Thing/c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, broken := range []error{nil, errors.New("the directory is immutable")} {
				w := newWorld(t)
				w.unchoosable = broken
				w.add("x").plan = func(name string, _ int) (pluginv1.Plan, error) { return pluginv1.Plan{Changes: tt.changes[name]}, nil }
				got := w.execute(Options{Mode: ModeApply, Root: tt.root, Text: things(named, named, named)})
				if broken != nil && len(tt.changes["b"]) > 0 {
					assert.Equal(t, report.ExitPrecondition, got.ExitCode)
					assert.Contains(t, errorsOf(got), "takes no choices of providers: the directory is immutable")
					assert.Empty(t, w.choices)
					assert.NotContains(t, w.lines(), "apply")
					continue
				}
				assert.Equal(t, report.ExitOK, got.ExitCode, errorsOf(got))
				assert.ElementsMatch(t, tt.kept, slices.Collect(maps.Keys(w.choices)))
			}
		})
	}
}
