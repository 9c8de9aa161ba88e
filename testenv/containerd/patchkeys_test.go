package containerd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/tools"
)

// TestPatchKeys: the table of the keys of patches has every key of containerd's own default configuration.
func TestPatchKeys(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("../../plugins/container-runtime/containerd/internal/settings/patchkeys.txt")
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), tools.For(t, "containerd-2.3/containerd"), "config", "default").Output()
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, toml.Unmarshal(out, &config))
	delete(config, "version")
	var walk func(at string, table map[string]any)
	walk = func(at string, level map[string]any) {
		for key, value := range level {
			if below, ok := value.(map[string]any); ok {
				walk(strings.TrimPrefix(at+"/"+key, "/"), below)
				continue
			}
			known := slices.ContainsFunc(strings.Split(string(table), "\n"), func(line string) bool {
				f := strings.Fields(line)
				if len(f) < 3 {
					return false
				}
				ok, _ := filepath.Match(strings.TrimSuffix(f[0], "/"), at)
				return ok && (slices.Contains(f[2:], key) || slices.Contains(f[2:], "*"))
			})
			assert.True(t, known || strings.Contains(at, "/registry"), "%s/%s", at, key) // which a patch may not set
		}
	}
	walk("", config)
}
