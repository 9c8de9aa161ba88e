package pluginv1_test

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// TestPlannedFiles: the files of a request and of a plan arrive as they were sent, and are sent only on request.
func TestPlannedFiles(t *testing.T) {
	t.Parallel()
	files := []pluginv1.PlannedFile{
		{Path: "/a", Content: []byte("canary\x00"), Mode: 0o640, UID: 12, GID: 1<<32 - 2},
		{Path: "/b", Directory: true, Mode: 0o755 | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky},
		{Path: "/c", Link: "../a"},
		{Path: "/d", Absent: true},
	}
	var got pluginv1.Request
	client := serveFake(t, &fake{plan: func(r pluginv1.Request) (pluginv1.Plan, error) {
		got = r
		return pluginv1.Plan{Changes: []pluginv1.Change{{ID: "a", Summary: "x", Listed: true}}, Files: files}, nil
	}})
	plan, err := client.Plan(t.Context(), pluginv1.Request{Files: files, ListFiles: true})
	require.NoError(t, err)
	assert.Equal(t, files, got.Files)
	assert.Equal(t, files, plan.Files)
	assert.True(t, plan.Changes[0].Listed)
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		assert.NotContains(t, fmt.Sprintf(format, files), "canary")
	}
	plan, err = client.Plan(t.Context(), pluginv1.Request{})
	require.NoError(t, err)
	assert.Empty(t, plan.Files)
	assert.False(t, plan.Changes[0].Listed)
	for _, wrong := range []string{"a", "/a/", "/a/../b", "/c"} {
		files = append(files[:4:4], pluginv1.PlannedFile{Path: wrong})
		_, err = client.Plan(t.Context(), pluginv1.Request{ListFiles: true})
		requireBreach(t, err, "P-50", "lists a file twice, or with a path that is not absolute and clean")
	}
}
