package launch

import (
	"context"
	"encoding/json"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/proctree"
)

// untidy leaves a process behind that has its own session and has lost its parent.
type untidy struct {
	pluginv1.Configurator
	left int
}

func (u *untidy) Apply(ctx context.Context, _ pluginv1.Request, _ int, _ func(pluginv1.Event) error) (pluginv1.Finished, error) {
	c := exec.CommandContext(ctx, "/bin/sh", "-c", `sleep 1000 >/dev/null 2>&1 & echo $!`)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := c.Output()
	if err != nil {
		return pluginv1.Finished{}, err
	}
	return pluginv1.Finished{}, json.Unmarshal(out, &u.left)
}

func TestOrphansEndWithApply(t *testing.T) {
	tree, err := proctree.Contain()
	require.NoError(t, err)
	u := &untidy{}
	_, err = contained{u, tree}.Apply(t.Context(), pluginv1.Request{}, 0, nil)
	require.NoError(t, err)
	require.NotZero(t, u.left)
	require.True(t, gone(u.left))
}
