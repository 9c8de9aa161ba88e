package launch

import (
	"context"
	"encoding/json"
	"log/slog"
	"os/exec"
	"syscall"
	"testing"

	testify "github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/proctree"
	"github.com/machineadm/machineadm/internal/require"
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
	testify.NoError(t, err)
	u := &untidy{}
	_, err = calls{u, slog.New(slog.DiscardHandler), tree}.Apply(t.Context(), pluginv1.Request{}, 0, nil)
	testify.NoError(t, err)
	testify.NotZero(t, u.left)
	testify.True(t, gone(u.left))
}

// TestNoSpaceForTheSocket: without an inode for its directory, or for the socket itself.
func TestNoSpaceForTheSocket(t *testing.T) {
	require.Root(t)
	for inodes, says := range map[string]string{"1": "mkdir ", "2": "no room for its socket"} {
		s := newShelf(t)
		p := s.put("x", script{})
		dir := t.TempDir()
		testify.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,nr_inodes="+inodes))
		t.Cleanup(func() { testify.NoError(t, syscall.Unmount(dir, 0)) })
		f := s.fleet(func(o *Options) { o.SocketDir = dir })
		_, err := f.Start(t.Context(), p)
		testify.ErrorContains(t, err, says)
		testify.ErrorIs(t, err, syscall.ENOSPC)
		exit, _ := Classify(err)
		testify.Equal(t, report.ExitState, exit)
	}
}

// TestPluginWithoutItsInterpreter: exec(2) reports only ENOENT.
func TestPluginWithoutItsInterpreter(t *testing.T) {
	s := newShelf(t)
	p := s.put("x", script{})
	testify.NoError(t, require.WriteProgram(p.Path, []byte("#!/nowhere/python3\n")))
	_, err := s.fleet(nil).Start(t.Context(), p)
	testify.EqualError(t, err, p.Path+": its interpreter /nowhere/python3 does not exist on this machine")
}
