package rpc_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	needs "github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/internal/require"
)

// TestProgramsHaveNoReflection compiles a plugin as for a release. Names of functions stay in a stripped program.
func TestProgramsHaveNoReflection(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "plugin")
	needs.NoError(t, require.Build(t.Context(), "../../noop", file))
	program, err := os.ReadFile(file)
	needs.NoError(t, err)
	assert.True(t, bytes.Contains(program, []byte("main.main")), "the program has no names of functions")
	assert.False(t, bytes.Contains(program, []byte("net/rpc.suitableMethods")), "net/rpc was not replaced, so that the linker keeps every method")
}
