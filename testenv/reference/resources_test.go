package reference

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestResourcePageIsUpToDate(t *testing.T) {
	t.Parallel()
	got, err := ResourcePage(root)
	require.NoError(t, err)
	want, err := os.ReadFile(root + "/docs/reference/controller-api.md")
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "make generate")
}
