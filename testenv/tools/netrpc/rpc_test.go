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

// TestProgramsKeepNoMethods compiles programs as for a release. Where one can look up any method by its name, the linker keeps all of
// them. Names of functions stay in a stripped program.
func TestProgramsKeepNoMethods(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"testenv/noop", "host/cmd/machineadm"} {
		file := filepath.Join(t.TempDir(), "program")
		needs.NoError(t, require.Build(t.Context(), "../../../"+source, file))
		program, err := os.ReadFile(file)
		needs.NoError(t, err)
		assert.True(t, bytes.Contains(program, []byte("main.main")), "the program has no names of functions")
		for _, name := range []string{"net/rpc.suitableMethods", "text/template.(*state).evalField"} {
			assert.False(t, bytes.Contains(program, []byte(name)), "%s has %s", source, name)
		}
	}
}
