package infrastructure

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asWritten runs each command of docs/first-boot.md on a machine whose first boot has ended: there is something to see.
func (r *rig) asWritten(t *testing.T, name string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/first-boot.md")
	require.NoError(t, err)
	_, part, _ := strings.Cut(string(page), "\n## On the machine\n")
	part, _, _ = strings.Cut(part, "\n## ")
	commands := regexp.MustCompile("(?m)\\| `([^`]+)` \\|$").FindAllStringSubmatch(part, -1)
	assert.Greater(t, len(commands), 10)
	for _, command := range commands {
		said, err := r.Node(name).Exec(t.Context(), "sh", "-c", command[1])
		require.NoError(t, err)
		assert.Zero(t, said.ExitCode, "%s: %s%s", command[1], said.Stdout, said.Stderr)
		assert.Equal(t, strings.HasPrefix(command[1], "test "), said.Stdout == "", command[1])
	}
}
