package parsers

//machineadm:tier controller

import (
	"os"
	"path/filepath"
	"testing"

	butane "github.com/coreos/butane/config"
	"github.com/coreos/butane/config/common"
	"github.com/coreos/ignition/v2/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestButane translates the examples for Ignition with Butane 0.24, without a warning, and parses the result.
func TestButane(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ignition.bu", "fetch/ignition.bu"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join("../../../examples", name))
			require.NoError(t, err)
			translated, report, err := butane.TranslateBytes(data, common.TranslateBytesOptions{})
			require.NoError(t, err, report.String())
			assert.Empty(t, report.Entries)
			parsed, warnings, err := config.Parse(translated)
			require.NoError(t, err, warnings.String())
			assert.Empty(t, warnings.Entries)
			if name == "ignition.bu" {
				return
			}
			program := parsed.Storage.Files[0]
			assert.Equal(t, "/opt/bin/machineadm", program.Path)
			assert.Equal(t, 0o755, *program.Mode)
			assert.Regexp(t, "^sha256-[0-9a-f]{64}$", *program.Contents.Verification.Hash)
			assert.LessOrEqual(t, len(translated), 16<<10, "the user data of EC2")
		})
	}
}
