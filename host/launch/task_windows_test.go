package launch

import (
	"os"
	"path/filepath"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTask: a task is registered, replaced and removed, and its removal reports what is left.
func TestTask(t *testing.T) {
	t.Parallel()
	const name = `\machineadm-test\resume`
	file := filepath.Join(t.TempDir(), "task.xml")
	registered := filepath.Join(os.Getenv("SystemRoot"), "System32", "Tasks", name)
	require.NoError(t, RemoveTask(t.Context(), name), "no such task")
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(filepath.Dir(registered))) })

	require.NoError(t, os.WriteFile(file, []byte("no task"), 0o600))
	require.ErrorContains(t, RegisterTask(t.Context(), name, file), "schtasks /Create: exit status 1")
	assert.NoFileExists(t, registered)

	for _, command := range []string{"first.exe", "second.exe"} {
		require.NoError(t, os.WriteFile(file, definition(command), 0o600))
		require.NoError(t, RegisterTask(t.Context(), name, file))
		assert.FileExists(t, registered)
	}
	require.NoError(t, RemoveTask(t.Context(), name))
	assert.NoFileExists(t, registered)
	require.NoError(t, RemoveTask(t.Context(), name), "already removed")
}

func definition(command string) []byte {
	text := `<?xml version="1.0" encoding="UTF-16"?><Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task"><Actions><Exec><Command>` +
		command + `</Command></Exec></Actions></Task>`
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		out = append(out, byte(unit), byte(unit>>8))
	}
	return out
}
