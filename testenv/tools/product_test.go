package tools

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Products of the checkout run without C libraries, and the second copy is of the same program.
func TestProducts(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()
	for _, into := range []string{first, second} {
		require.NoError(t, Products(t.Context(), into, map[string]string{"plugins/noop": "testenv/noop", "motd": "testenv/outside/motd"}))
	}
	require.NoError(t, exec.CommandContext(t.Context(), "cmp", filepath.Join(first, "motd"), filepath.Join(second, "motd")).Run())
	out, err := exec.CommandContext(t.Context(), "go", "version", "-m", filepath.Join(first, "plugins/noop")).Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "CGO_ENABLED=0")

	require.ErrorContains(t, Products(t.Context(), first, map[string]string{"x": "testenv/absent"}), "build testenv/absent")
	require.ErrorContains(t, Products(t.Context(), first, map[string]string{"motd": "testenv/outside/motd"}), "exist")
}
