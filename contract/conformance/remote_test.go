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

	"github.com/machineadm/machineadm/contract/conformance/internal/casetest"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
)

const remoteConfig = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: RemoteConfig\nmetadata: {name: a}\nspec: {provider: p, uri: \"${server}/a\"}\n"

// TestCounterpart: the files of a case in a directory and by HTTP, with the canary, and the values of a vendor's own, which
// ends with the case.
func TestCounterpart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	casetest.Put(t, filepath.Join(dir, "one"), map[string]string{
		"config.yaml": strings.Replace(remoteConfig, "a\"}", "a\", providerConfig: {own: \"${own}\", dir: \"${dir}\"}}", 1),
		"served/a":    "x ${canary}\n",
	})
	loaded, err := LoadCases(dir)
	require.NoError(t, err)
	ended := make(chan struct{})
	suite := Suite{Binary: "x", Cases: loaded, shared: &rig.Shared{}, Setup: func(ctx context.Context, c Counterpart) (map[string]string, error) {
		context.AfterFunc(ctx, func() { close(ended) })
		assert.Equal(t, "one", c.Case)
		data, err := os.ReadFile(filepath.Join(c.Dir, "a"))
		assert.Equal(t, "x "+c.Canary+"\n", string(data))
		return map[string]string{"own": "mine"}, err
	}}
	r, err := suite.newRunner(t.Context(), 0)
	require.NoError(t, err)
	document, err := testcase.Parse(r.Document)
	require.NoError(t, err)
	spec, _ := document["spec"].(map[string]any)
	assert.Equal(t, map[string]any{"own": "mine", "dir": r.Counterpart.Dir}, spec["providerConfig"])
	uri, _ := spec["uri"].(string)
	for _, name := range []string{".", "a"} {
		info, err := os.Stat(filepath.Join(r.Counterpart.Dir, name))
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
	assert.Equal(t, "x "+r.Canary+"\n", string(data))
	assert.Equal(t, int64(2), r.Counterpart.Seen.Load(), "a connection and a request")
	require.NoError(t, r.End())
	<-ended

	suite.Setup = nil
	_, err = suite.newRunner(t.Context(), 0)
	require.ErrorContains(t, err, "${own}, which has no value")
}
