package reference

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

func TestResourcePageIsUpToDate(t *testing.T) {
	t.Parallel()
	got, err := ResourcePage(root)
	require.NoError(t, err)
	want, err := os.ReadFile(root + "/docs/reference/controller-api.md")
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "make generate")
}

func TestDefinitionsAreUpToDate(t *testing.T) {
	t.Parallel()
	all, err := source(t).Definitions(root)
	require.NoError(t, err)
	require.Len(t, all, 2*len(v1alpha1.MachineKinds()))
	for name, want := range all {
		got, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "make generate")
	}
}
