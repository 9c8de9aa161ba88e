package run

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// Where no plugin can run, a validation finds what the contract alone can.
func TestContractOnly(t *testing.T) {
	t.Parallel()
	const head = "---\napiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: "
	const foreign = "---\napiVersion: example.com/v1\nkind: Motd\nmetadata: {name: a}\nspec: {x: 1}\n"
	got, _ := Execute(t.Context(), Options{
		Mode: ModeValidate, ContractOnly: true, File: "f",
		Stream: []byte(head + "a}\nspec: {moduls: [x], modules: 1}\n" + foreign + head + "b, tiemout: 1m}\nspec: {profiles: x}\n"),
	}, Dependencies{}, report.Report{})
	assert.Equal(t, report.ExitUsage, got.ExitCode)
	var found []string
	for _, e := range got.Errors {
		found = append(found, e.Document+" "+e.Field)
		assert.NotZero(t, e.Line)
	}
	assert.ElementsMatch(t, []string{"Sysctl/a spec.moduls", "Sysctl/a spec.modules", "Sysctl/b metadata.tiemout", "Sysctl/b spec.profiles"}, found)
	got, _ = Execute(t.Context(), Options{
		Mode: ModeValidate, ContractOnly: true, Stream: []byte(head + "a}\nspec: {modules: [overlay]}\n" + foreign),
	}, Dependencies{}, report.Report{})
	assert.Equal(t, report.ExitOK, got.ExitCode, errorsOf(got))
}

// Every kind that is served has a struct.
func TestServedKindsAreKnown(t *testing.T) {
	t.Parallel()
	for _, kind := range v1alpha1.ServedKinds() {
		assert.NotNil(t, v1alpha1.New(kind), kind)
	}
	assert.Nil(t, v1alpha1.New("Motd"))
}
