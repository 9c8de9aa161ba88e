package testcase

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/conformance/internal/casetest"
)

const sourceConfig = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: RemoteConfig\nmetadata: {name: a}\nspec: {provider: p, uri: \"${server}/a\"}\n"

// TestCasesOfSources: what has no effect for the type of plugin that a case is for is refused.
func TestCasesOfSources(t *testing.T) {
	t.Parallel()
	key := strings.ReplaceAll(sourceConfig, "RemoteConfig", "EncryptedConfig")
	plain := strings.ReplaceAll(config, "%s", "x")
	digest := strings.Repeat("0f", 32)
	for name, tt := range map[string]struct {
		files map[string]string
		says  string // "" is a valid case
	}{
		"a file":                  {map[string]string{"config.yaml": sourceConfig, "served/a": "", "expect.yaml": "file: a\n"}, ""},
		"a digest":                {map[string]string{"config.yaml": key, "expect.yaml": "sha256: \"" + digest + "\"\n"}, ""},
		"errors":                  {map[string]string{"config.yaml": key, "expect.yaml": "errors: [{code: Retry}]\n"}, ""},
		"no expectation":          {map[string]string{"config.yaml": sourceConfig}, ""},
		"a missing file":          {map[string]string{"config.yaml": sourceConfig, "expect.yaml": "file: a\n"}, "expect.yaml: file: stat"},
		"no digest":               {map[string]string{"config.yaml": key, "expect.yaml": "sha256: " + strings.Repeat("x", 64) + "\n"}, "sha256: must be"},
		"an object of a refusal":  {map[string]string{"config.yaml": key, "expect.yaml": "errors: [{code: Retry}]\nfile: a\n"}, "a refused document has no object"},
		"a tree":                  {map[string]string{"config.yaml": sourceConfig, "root/a": ""}, "root has no effect for the kind RemoteConfig"},
		"changes":                 {map[string]string{"config.yaml": key, "expect.yaml": "changes: []\n"}, "changes: has no effect for the kind EncryptedConfig"},
		"a report":                {map[string]string{"config.yaml": strings.ReplaceAll(sourceConfig, "RemoteConfig", "ReportTarget")}, "the kit sends no reports"},
		"served for another kind": {map[string]string{"config.yaml": plain, "served/a": ""}, "served has no effect for the kind X"},
		"file for another kind":   {map[string]string{"config.yaml": plain, "expect.yaml": "file: a\n"}, "file: has no effect for the kind X"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			casetest.Put(t, filepath.Join(dir, "one"), tt.files)
			_, err := LoadAll(dir)
			if tt.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.says)
		})
	}
}
