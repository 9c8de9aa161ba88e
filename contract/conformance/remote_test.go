package conformance

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const remoteConfig = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: RemoteConfig\nmetadata: {name: a}\nspec: {provider: p, uri: \"${server}/a\"}\n"

// TestCasesOfSources: what has no effect for the type of plugin that a case is for is refused.
func TestCasesOfSources(t *testing.T) {
	t.Parallel()
	key := strings.ReplaceAll(remoteConfig, "RemoteConfig", "EncryptedConfig")
	plain := strings.ReplaceAll(config, "%s", "x")
	digest := strings.Repeat("0f", 32)
	for name, tt := range map[string]struct {
		files map[string]string
		says  string // "" is a valid case
	}{
		"a file":                  {map[string]string{"config.yaml": remoteConfig, "served/a": "", "expect.yaml": "file: a\n"}, ""},
		"a digest":                {map[string]string{"config.yaml": key, "expect.yaml": "sha256: \"" + digest + "\"\n"}, ""},
		"errors":                  {map[string]string{"config.yaml": key, "expect.yaml": "errors: [{code: Retry}]\n"}, ""},
		"no expectation":          {map[string]string{"config.yaml": remoteConfig}, ""},
		"a missing file":          {map[string]string{"config.yaml": remoteConfig, "expect.yaml": "file: a\n"}, "expect.yaml: file: stat"},
		"no digest":               {map[string]string{"config.yaml": key, "expect.yaml": "sha256: " + strings.Repeat("x", 64) + "\n"}, "sha256: must be"},
		"an object of a refusal":  {map[string]string{"config.yaml": key, "expect.yaml": "errors: [{code: Retry}]\nfile: a\n"}, "a refused document has no object"},
		"a tree":                  {map[string]string{"config.yaml": remoteConfig, "root/a": ""}, "root has no effect for the kind RemoteConfig"},
		"changes":                 {map[string]string{"config.yaml": key, "expect.yaml": "changes: []\n"}, "changes: has no effect for the kind EncryptedConfig"},
		"a report":                {map[string]string{"config.yaml": strings.ReplaceAll(remoteConfig, "RemoteConfig", "ReportTarget")}, "the kit sends no reports"},
		"served for another kind": {map[string]string{"config.yaml": plain, "served/a": ""}, "served has no effect for the kind X"},
		"file for another kind":   {map[string]string{"config.yaml": plain, "expect.yaml": "file: a\n"}, "file: has no effect for the kind X"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, filepath.Join(dir, "one"), tt.files)
			_, err := LoadCases(dir)
			if tt.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.says)
		})
	}
}

// TestCounterpart: the files of a case in a directory and by HTTP, with the canary, and the values of a vendor's own, which
// ends with the case.
func TestCounterpart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "one"), map[string]string{
		"config.yaml": strings.Replace(remoteConfig, "a\"}", "a\", providerConfig: {own: \"${own}\", dir: \"${dir}\"}}", 1),
		"served/a":    "x ${canary}\n",
	})
	cases, err := LoadCases(dir)
	require.NoError(t, err)
	ended := make(chan struct{})
	suite := Suite{Binary: "x", Cases: cases, shared: &shared{}, Setup: func(ctx context.Context, c Counterpart) (map[string]string, error) {
		context.AfterFunc(ctx, func() { close(ended) })
		assert.Equal(t, "one", c.Case)
		data, err := os.ReadFile(filepath.Join(c.Dir, "a"))
		assert.Equal(t, "x "+c.Canary+"\n", string(data))
		return map[string]string{"own": "mine"}, err
	}}
	r, err := suite.newRunner(t.Context(), 0)
	require.NoError(t, err)
	document, err := parse(r.document)
	require.NoError(t, err)
	spec, _ := document["spec"].(map[string]any)
	assert.Equal(t, map[string]any{"own": "mine", "dir": r.counterpart.dir}, spec["providerConfig"])
	uri, _ := spec["uri"].(string)
	for _, name := range []string{".", "a"} {
		info, err := os.Stat(filepath.Join(r.counterpart.dir, name))
		require.NoError(t, err)
		assert.Zero(t, info.Mode().Perm()&0o077, name)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, uri, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	data, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Equal(t, "x "+r.canary+"\n", string(data))
	assert.Equal(t, int64(2), r.counterpart.seen.Load(), "a connection and a request")
	require.NoError(t, r.end())
	<-ended

	suite.Setup = nil
	_, err = suite.newRunner(t.Context(), 0)
	require.ErrorContains(t, err, "${own}, which has no value")
}
