package run

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// TestContractOnly: without plugins, validation reports violations of the contract's structs.
func TestContractOnly(t *testing.T) {
	t.Parallel()
	const head = "---\napiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: "
	const foreign = "---\napiVersion: example.com/v1\nkind: Motd\nmetadata: {name: a}\nspec: {x: 1}\n"
	got, _ := Execute(t.Context(), Options{
		Mode: ModeValidate, ContractOnly: true,
		Stream: decode(t, []byte(head+"a}\nspec: {moduls: [x], modules: 1}\n"+foreign+head+"b, tiemout: 1m}\nspec: {profiles: x}\n")),
	}, Dependencies{}, report.Report{})
	assert.Equal(t, report.ExitUsage, got.ExitCode)
	var found []string
	for _, e := range got.Errors {
		found = append(found, e.Document+" "+e.Field)
		assert.NotZero(t, e.Line)
	}
	assert.ElementsMatch(t, []string{"Sysctl/a spec.moduls", "Sysctl/a spec.modules", "Sysctl/b metadata.tiemout", "Sysctl/b spec.profiles"}, found)
	got, _ = Execute(t.Context(), Options{
		Mode: ModeValidate, ContractOnly: true, Stream: decode(t, []byte(head+"a}\nspec: {parameters: {net.*.x: 1}, ignoreMissing: [a.b]}\n")),
	}, Dependencies{}, report.Report{})
	assert.Equal(t, report.ExitUsage, got.ExitCode)
	require.Len(t, got.Errors, 2, "what no node accepts")
	assert.Equal(t, `spec.parameters["net.*.x"]`, got.Errors[0].Field)
	assert.Equal(t, "spec.ignoreMissing[0]", got.Errors[1].Field)
	const timesync = "---\napiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Timesync\nmetadata: {name: a}\nspec: {profile: azur, pools: [{address: a, maxSources: 99}]}\n"
	got, _ = Execute(t.Context(), Options{Mode: ModeValidate, ContractOnly: true, Stream: decode(t, []byte(timesync))}, Dependencies{}, report.Report{})
	require.Len(t, got.Errors, 2, "the values and the bounds of the schema")
	assert.Equal(t, "did you mean azure?", got.Errors[0].Hint)
	assert.Contains(t, got.Errors[1].Message, "must be from 1 to 16")
	got, _ = Execute(t.Context(), Options{
		Mode: ModeValidate, ContractOnly: true, Stream: decode(t, []byte(head+"a}\nspec: {modules: [overlay]}\n"+foreign)),
	}, Dependencies{}, report.Report{})
	assert.Equal(t, report.ExitOK, got.ExitCode, errorsOf(got))
}

// TestServedKindsAreKnown: every served kind has a struct.
func TestServedKindsAreKnown(t *testing.T) {
	t.Parallel()
	for _, kind := range v1alpha1.Kinds() {
		assert.NotNil(t, v1alpha1.New(kind), kind)
	}
	assert.Nil(t, v1alpha1.New("Motd"))
}

func TestValidate(t *testing.T) {
	t.Parallel()
	elsewhere := "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, when: {os: [windows]}}\nspec: {provider: %s}\n"
	tests := map[string]struct {
		setup    func(w *world)
		stream   []byte
		exit     int
		outcomes string
		warned   bool // that a plugin for another operating system has not checked it
	}{
		"another platform is no error": {
			setup:  func(w *world) { w.plugins["x"].plan = planFor(map[string]error{"a": unsupported("not on Linux")}) },
			stream: things(named), warned: true,
		},
		"another platform is no error without a provider": {
			setup:  func(w *world) { w.plugins["x"].plan = planFor(map[string]error{"a": unsupported("not on Linux")}) },
			stream: things("{}"), warned: true,
		},
		"a field that the named provider does not support is an error": {
			setup: func(w *world) {
				e := pluginv1.AsError(invalid("spec.pools"))
				e.Code = pluginv1.CodeUnsupported
				w.plugins["x"].plan = planFor(map[string]error{"a": e})
			},
			stream: things(named), exit: report.ExitPrecondition, outcomes: "Failed",
		},
		"a provider that does not serve this machine is asked": {
			setup: func(w *world) {
				w.plugins["x"].fitness = pluginv1.FitnessUnsupported
				w.plugins["x"].plan = planFor(map[string]error{"a": invalid("spec.one")})
			},
			stream: things("{}"), exit: report.ExitUsage, outcomes: "Failed",
		},
		"a document for another distribution is validated": {
			setup:  func(w *world) { w.plugins["x"].plan = planFor(map[string]error{"a": invalid("spec.one")}) },
			stream: []byte(strings.Replace(fmt.Sprintf(elsewhere, "x"), "os: [windows]", "distributions: [alpine]", 1)), exit: report.ExitUsage, outcomes: "Failed",
		},
		"a document for another system is not refused by the plugin of this one": {
			setup:  func(w *world) { w.plugins["x"].plan = planFor(map[string]error{"a": invalid("spec.one")}) },
			stream: fmt.Appendf(nil, elsewhere, "x"), outcomes: "NotApplicable", warned: true,
		},
		"a document for another system has the fields of the contract": {
			stream: []byte("apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: a, when: {os: [windows]}}\nspec: {moduls: [a]}\n"),
			exit:   report.ExitUsage, outcomes: "Failed",
		},
		"a document for this system and another": {
			setup:  func(w *world) { w.plugins["x"].plan = planFor(map[string]error{"a": invalid("spec.one")}) },
			stream: []byte(strings.Replace(fmt.Sprintf(elsewhere, "x"), "[windows]", "[windows, linux]", 1)), exit: report.ExitUsage, outcomes: "Failed",
		},
		"an error wins over a provider for another platform": {
			setup: func(w *world) {
				w.plugins["x"].plan = planFor(map[string]error{"a": invalid("spec.one")})
				w.add("y").plan = planFor(map[string]error{"a": unsupported("not on Linux")})
			},
			stream: things("{}"), exit: report.ExitUsage, outcomes: "Failed",
		},
		"an unsupported field wins over a provider for another platform": {
			setup: func(w *world) {
				e := pluginv1.AsError(invalid("spec.pools"))
				e.Code = pluginv1.CodeUnsupported
				w.plugins["x"].plan = planFor(map[string]error{"a": e})
				w.add("y").plan = planFor(map[string]error{"a": unsupported("not on Linux")})
			},
			stream: things("{}"), exit: report.ExitPrecondition, outcomes: "Failed",
		},
		"a provider that accepts wins over both": {
			setup: func(w *world) {
				w.plugins["x"].plan = planFor(map[string]error{"a": invalid("spec.one")})
				w.add("y").plan = planFor(map[string]error{"a": unsupported("not on Linux")})
				w.add("z")
			},
			stream: things("{}"),
		},
		"a document for another machine without its plugin is not applicable": {
			stream: fmt.Appendf(nil, elsewhere, "y"), outcomes: "NotApplicable", warned: true,
		},
		"a missing plugin is an error": {
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
			got := w.execute(Options{Mode: ModeValidate, Root: "/empty", Text: tt.stream})
			if got.ExitCode != tt.exit || outcomes(got) != tt.outcomes {
				t.Errorf("exit %d [%s], want %d [%s]; errors:\n%s", got.ExitCode, outcomes(got), tt.exit, tt.outcomes, errorsOf(got))
			}
			assert.Equal(t, tt.warned, strings.Contains(fmt.Sprint(got.Documents), "for another operating system"))
			for _, e := range w.events {
				if e.Type != EventRunStarted && e.Type != EventRunFinished && e.Type != EventWarning {
					t.Errorf("the event %s of a plan against an empty root", e.Type)
				}
			}
		})
	}
}

// TestDecoderErrorsHideNoPluginErrors: one run reports the errors of a document's envelope and of its spec.
func TestDecoderErrorsHideNoPluginErrors(t *testing.T) {
	t.Parallel()
	stream := []byte("apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, when: {os: [linx]}}\nspec: {size: &x 1, color: 2}\n")
	for _, mode := range []Mode{ModeValidate, ModePlan, ModeApply} {
		w := newWorld(t)
		p := w.add("x")
		p.plan = func(string, int) (pluginv1.Plan, error) {
			return pluginv1.Plan{}, &pluginv1.Error{Code: pluginv1.CodeInvalidConfig, Violations: []document.Violation{
				{Field: "spec.size", Message: "known by its anchor"}, {Field: "spec.color", Message: "must be a string"},
			}}
		}
		got := w.execute(Options{Mode: mode, Text: stream})
		assert.Equal(t, report.ExitUsage, got.ExitCode)
		var fields []string
		for _, e := range got.Errors {
			fields = append(fields, e.Field)
			assert.NotZero(t, e.Line, e.Field)
		}
		assert.Equal(t, []string{"metadata.when.os[0]", "spec.size", "spec.color"}, fields)
		assert.Empty(t, got.Documents, "a faulty document is not in the run")
	}
}

// TestFaultyDocumentsAreOnlyValidated: a faulty document is not checked against the machine.
func TestFaultyDocumentsAreOnlyValidated(t *testing.T) {
	t.Parallel()
	stream := []byte("apiVersion: example.com/v1\nkind: Thing\nmetadata: {nme: a}\nspec: {}\n")
	w := newWorld(t)
	p := w.add("x")
	p.plan = func(string, int) (pluginv1.Plan, error) {
		return pluginv1.Plan{}, &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "not ready"}
	}
	got := w.execute(Options{Mode: ModeApply, Text: stream})
	assert.Equal(t, report.ExitUsage, got.ExitCode)
	assert.NotContains(t, errorsOf(got), "not ready")
	assert.NotContains(t, w.lines(), "apply")
}

// TestMisspelledKind: the hint for a misspelled kind is the correct one, not the installation of a plugin.
func TestMisspelledKind(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"{}", "{provider: procfs}"} {
		w := newWorld(t)
		got := w.execute(Options{Mode: ModePlan, Text: []byte(
			"apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctrl\nmetadata: {name: a}\nspec: " + spec + "\n")})
		require.Len(t, got.Errors, 1)
		assert.Equal(t, "did you mean the kind Sysctl?", got.Errors[0].Hint, spec)
	}
}

// TestMisspelledProvider: the hint names an installed provider, and a group that is not the contract's is pointed out.
func TestMisspelledProvider(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string]string{
		"apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: a}\nspec: {provider: procsf}\n": "did you mean the provider procfs?",
		"apiVersion: machineadm.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: a}\nspec: {provider: procfs}\n":         "did you mean apiVersion: machineadm.cluster.x-k8s.io/v1alpha1?",
		"apiVersion: v1\nkind: Sysctl\nmetadata: {name: a}\nspec: {}\n":                                                   "did you mean apiVersion: machineadm.cluster.x-k8s.io/v1alpha1?",
	} {
		w := newWorld(t)
		w.add("procfs")
		got := w.execute(Options{Mode: ModePlan, Text: []byte(stream)})
		require.Len(t, got.Errors, 1, stream)
		assert.Equal(t, want, got.Errors[0].Hint, stream)
	}
}

// TestValidateWithoutPlugins: the schema of the contract is checked, and the missing plugin is reported as well.
func TestValidateWithoutPlugins(t *testing.T) {
	t.Parallel()
	stream := []byte("apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: a}\nspec: {profile: x}\n")
	got := newWorld(t).execute(Options{Mode: ModeValidate, Root: "/empty", Text: stream})
	assert.Equal(t, report.ExitUsage, got.ExitCode)
	require.Len(t, got.Errors, 2, errorsOf(got))
	assert.Equal(t, "spec.profile", got.Errors[0].Field)
	assert.Contains(t, got.Errors[1].Message, "no plugin for Sysctl is installed")
}

func TestValidateAsksEveryProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x").plan = planFor(map[string]error{"a": invalid("spec.one")})
	w.add("y")
	if got := w.execute(Options{Mode: ModeValidate, Root: "/empty", Text: things("{one: 1}")}); got.ExitCode != report.ExitOK {
		t.Errorf("one provider takes it, but exit %d; errors:\n%s", got.ExitCode, errorsOf(got))
	}
	w.plugins["y"].plan = planFor(map[string]error{"a": invalid("spec.one")})
	if got := w.execute(Options{Mode: ModeValidate, Root: "/empty", Text: things("{one: 1}")}); got.ExitCode != report.ExitUsage {
		t.Errorf("every provider refuses it, but exit %d; errors:\n%s", got.ExitCode, errorsOf(got))
	}
}
