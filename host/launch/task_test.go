package launch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIgnoreAbsent(t *testing.T) {
	t.Parallel()
	there := filepath.Join(t.TempDir(), "resume")
	require.NoError(t, os.WriteFile(there, nil, 0o600))
	missing := filepath.Join(t.TempDir(), "machineadm", "resume")
	failed := errors.New("exit status 1")
	for name, test := range map[string]struct {
		deletion error
		file     string
		want     error
	}{
		"deleted":           {nil, missing, nil},
		"no such task":      {failed, missing, nil},
		"the task is there": {failed, there, failed},
		"unknown":           {failed, filepath.Join(there, "below"), failed},
	} {
		assert.ErrorIs(t, ignoreAbsent(test.deletion, test.file), test.want, name)
	}
}
