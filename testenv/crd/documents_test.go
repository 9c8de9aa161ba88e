package crd_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/testenv/tools"
)

// TestRulesOfDocuments: what the API server refuses by a rule that compares fields, a plugin refuses as well, and so does a validate without the
// plugin, as that of a document for another operating system. All name the same field, or a part of it.
func TestRulesOfDocuments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, tools.All(t.Context(), dir))
	for what, when := range map[string]map[string]any{"with the plugin": {}, "without a plugin": {"os": []any{"windows"}}} {
		count := 0
		for _, kind := range contract.MachineKinds() {
			var stream bytes.Buffer
			cases := casesOf(kind)
			for i, rc := range cases {
				spec := map[string]any{}
				fromYAML(t, []byte(strings.ReplaceAll(rc[0], reference, "{value: x}")), &spec)
				stream.WriteString("---\n")
				require.NoError(t, document.Encode(&stream, map[string]any{
					"apiVersion": contract.APIVersion, "kind": kind, "metadata": map[string]any{"name": fmt.Sprintf("rule-%d", i), "when": when}, "spec": spec,
				}))
			}
			if len(cases) == 0 {
				continue
			}
			file := filepath.Join(dir, "node.yaml")
			require.NoError(t, os.WriteFile(file, stream.Bytes(), 0o600))
			out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "machineadm"), "validate", "--plugin-dir", dir, "--path", file).CombinedOutput()
			require.Error(t, err, "%s: %s", what, out)
			for i, rc := range cases {
				field := regexp.MustCompile(`\[([a-z])\]`).ReplaceAllString(rc[1], ".$1")
				found := regexp.MustCompile(fmt.Sprintf(`%s/rule-%d: %s[:.\[]`, kind, i, regexp.QuoteMeta(field))).Match(out)
				assert.True(t, found, "%s: no error of %s is at %s: %s", what, kind, field, rc[0])
				count++
			}
		}
		t.Logf("%d documents %s", count, what)
	}
}
