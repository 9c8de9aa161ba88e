package legacy

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
)

// start runs a plugin with today's client, for results that the host does not show.
func start(t *testing.T, plugin, provider string) *launch.Process {
	t.Helper()
	path := filepath.Join(t.TempDir(), naming.Binary("Noop", provider))
	install(t, plugin, path)
	p, err := launch.Start(t.Context(), launch.Options{
		Command: exec.Command(path), SocketDir: short(t), Stderr: os.Stderr,
		Environment: launch.Environment(runtime.GOOS, os.LookupEnv),
	})
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	return p
}

// request is one for an empty image root. The document is in JSON.
func request(t *testing.T, spec string) pluginv1.Request {
	t.Helper()
	root := t.TempDir()
	found, err := target.Detect(root)
	require.NoError(t, err)
	return pluginv1.Request{
		Document: []byte(`{"apiVersion":"example.com/v1","kind":"Noop","metadata":{"name":"a"},"spec":` + spec + `}`),
		Root:     root, Target: found,
	}
}

// TestAnswersOfTheReleaseBefore: each field of yesterday's wire still arrives.
func TestAnswersOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	p := start(t, before, provider)
	r := request(t, `{"touch":["a"],"content":"x"}`)
	d, err := p.Describe(t.Context(), pluginv1.DescribeRequest{Root: r.Root, Target: r.Target})
	require.NoError(t, err)
	assert.Equal(t, []string{"debian"}, d.Distributions)
	assert.Equal(t, []string{"spec.token"}, d.Kinds[0].SecretFields)

	r.ClaimKey = []byte("key")
	plan, err := p.Plan(t.Context(), r)
	require.NoError(t, err)
	assert.Equal(t, []pluginv1.Claim{
		pluginv1.NewClaim(r.ClaimKey, "file:/a", "spec.touch", []byte("x"), []byte("0644"), nil),
	}, plan.Claims)

	r.Document = request(t, `{"plan":"precondition"}`).Document
	_, err = p.Plan(t.Context(), r)
	var e *pluginv1.Error
	require.ErrorAs(t, err, &e)
	assert.True(t, e.Final)
	assert.Equal(t, map[string]string{"says": "precondition"}, e.Facts)
}
