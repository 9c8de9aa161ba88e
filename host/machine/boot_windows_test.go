package machine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows/registry"
)

// TestBootID: a boot keeps its name, and another boot, which has no key, gets another.
func TestBootID(t *testing.T) {
	const path = `SOFTWARE\machineadm-boot-test`
	t.Cleanup(func() { assert.NoError(t, registry.DeleteKey(registry.CURRENT_USER, path)) })
	first, err := bootIn(registry.CURRENT_USER, path)
	require.NoError(t, err)
	again, err := bootIn(registry.CURRENT_USER, path)
	require.NoError(t, err)
	assert.NotEmpty(t, first)
	assert.Equal(t, first, again)
	require.NoError(t, registry.DeleteKey(registry.CURRENT_USER, path))
	other, err := bootIn(registry.CURRENT_USER, path)
	require.NoError(t, err)
	assert.NotEqual(t, first, other)
	assert.Empty(t, BootID(t.TempDir()))
}
