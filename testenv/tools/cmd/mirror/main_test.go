package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../../../.."

func TestTypesAreUpToDate(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "types.go")
	require.NoError(t, run([]string{root + "/contract/v1alpha1", file}))
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	want, err := os.ReadFile(root + "/host/controller/api/v1alpha1/zz_generated.types.go")
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "make generate")
}

// TestTablesAreChecked: an entry for a field that was renamed is an error, not a bound that silently goes away.
func TestTablesAreChecked(t *testing.T) {
	t.Parallel()
	source, err := read(root + "/contract/v1alpha1")
	require.NoError(t, err)
	delete(source, "Krb5Conf")
	_, err = write(source, []string{"DomainJoin"})
	require.EqualError(t, err, "Krb5Conf is not a struct of the contract")
	source, err = read(root + "/contract/v1alpha1")
	require.NoError(t, err)
	_, err = write(source, []string{"DomainJoin"})
	require.EqualError(t, err, "rules.go has an entry for ContainerRuntimeSpec, which the contract does not have")
	all, _, err := flat(source, "Proxy")
	require.NoError(t, err)
	_, err = excludes("http", "nothing").marker(all)
	require.EqualError(t, err, "a rule names the field nothing, which does not exist")
}

func TestMarkers(t *testing.T) {
	t.Parallel()
	source, err := read(root + "/contract/v1alpha1")
	require.NoError(t, err)
	all, owners, err := flat(source, "TimePool")
	require.NoError(t, err)
	assert.Equal(t, []string{"TimePool", "TimeSource"}, owners)
	marker, err := excludes("key", "nts", "address").marker(all)
	require.NoError(t, err)
	assert.Equal(t, `kubebuilder:validation:XValidation:rule="!(has(self.key) && ((has(self.nts) && self.nts) || `+
		`(has(self.address) && size(self.address) > 0)))",message="key excludes nts and address",fieldPath=".key"`, marker)
	spec, _, err := flat(source, "DomainJoinSpec")
	require.NoError(t, err)
	markers := map[string]string{}
	for _, f := range spec {
		for _, b := range append(values("a", "b"), text("x")...) {
			markers[f.json+" "+b.name] = b.marker(f)
		}
	}
	assert.Equal(t, `kubebuilder:validation:Enum="a";"b";""`, markers["state Enum"], "optional: empty is absent")
	assert.Equal(t, "kubebuilder:validation:Pattern=`^(?:x)?$`", markers["state Pattern"])
	assert.Equal(t, "kubebuilder:validation:Pattern=`^(?:x)$`", markers["domain Pattern"])
	assert.Equal(t, `kubebuilder:validation:items:Enum="a";"b"`, markers["servers Enum"])
	assert.Equal(t, "a, b and c", listed("and", "a", "b", "c"))
}
