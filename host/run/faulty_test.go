package run

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// One run reports every error: those of a document's envelope and those that its plugin finds in its spec.
func TestEnvelopeFaultsHideNoOthers(t *testing.T) {
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
		got := w.execute(Options{Mode: mode, Stream: stream})
		assert.Equal(t, report.ExitUsage, got.ExitCode)
		var fields []string
		for _, e := range got.Errors {
			fields = append(fields, e.Field)
			assert.NotZero(t, e.Line, e.Field)
		}
		assert.Equal(t, []string{"metadata.when.os[0]", "spec.size", "spec.color"}, fields)
		assert.Empty(t, got.Documents, "a document with faults is no document of the run")
	}
}

// What the machine lacks is said once the stream is right.
func TestFaultyDocumentsAreOnlyValidated(t *testing.T) {
	t.Parallel()
	stream := []byte("apiVersion: example.com/v1\nkind: Thing\nmetadata: {nme: a}\nspec: {}\n")
	w := newWorld(t)
	p := w.add("x")
	p.plan = func(string, int) (pluginv1.Plan, error) {
		return pluginv1.Plan{}, &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "not ready"}
	}
	got := w.execute(Options{Mode: ModeApply, Stream: stream})
	assert.Equal(t, report.ExitUsage, got.ExitCode)
	assert.NotContains(t, errorsOf(got), "not ready")
	assert.NotContains(t, w.lines(), "apply")
}

// A misspelled kind of this release is not taken for one whose plugin is missing.
func TestMisspelledKind(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"{}", "{provider: procfs}"} {
		w := newWorld(t)
		got := w.execute(Options{Mode: ModePlan, Stream: []byte(
			"apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctrl\nmetadata: {name: a}\nspec: " + spec + "\n")})
		require.Len(t, got.Errors, 1)
		assert.Equal(t, "did you mean the kind Sysctl?", got.Errors[0].Hint, spec)
	}
}
