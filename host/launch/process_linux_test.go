package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"slices"
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
	left   int
	answer pluginv1.Finished
}

func (u *untidy) Apply(ctx context.Context, _ pluginv1.Request, _ int, _ func(pluginv1.Event) error) (pluginv1.Finished, error) {
	c := exec.CommandContext(ctx, "/bin/sh", "-c", `sleep 1000 >/dev/null 2>&1 & echo $!`)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := c.Output()
	if err != nil {
		return pluginv1.Finished{}, err
	}
	return u.answer, json.Unmarshal(out, &u.left)
}

func TestOrphansEndWithApply(t *testing.T) {
	tree, err := proctree.Contain()
	testify.NoError(t, err)
	failure := &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "no"}
	for _, answer := range []pluginv1.Finished{{}, {Stopped: true}, {Error: failure}} {
		u := &untidy{answer: answer}
		var said []pluginv1.Event
		f, err := calls{u, slog.New(slog.DiscardHandler), tree}.Apply(t.Context(), pluginv1.Request{}, 0, func(e pluginv1.Event) error {
			said = append(said, e)
			return nil
		})
		testify.NoError(t, err)
		testify.Equal(t, answer, f)
		testify.NotZero(t, u.left)
		testify.True(t, gone(u.left))
		if answer.Stopped || answer.Error != nil {
			testify.Empty(t, said, "the Apply is not said to be done")
			continue
		}
		testify.Len(t, said, 1)
		warning, ok := said[0].(pluginv1.Warning)
		testify.True(t, ok)
		testify.Contains(t, warning.Message, fmt.Sprintf("the process sleep (PID %d), which was started by this Apply, ended with it", u.left))
	}
	u := &untidy{}
	_, err = calls{u, slog.New(slog.DiscardHandler), tree}.Apply(t.Context(), pluginv1.Request{}, 0, func(pluginv1.Event) error { return io.ErrClosedPipe })
	testify.ErrorIs(t, err, io.ErrClosedPipe)
}

// TestManyOrphans: a few of them are named.
func TestManyOrphans(t *testing.T) {
	said := 0
	killed := slices.Repeat([]proctree.Killed{{PID: 7, Name: "a\xff"}}, 100)
	testify.NoError(t, warnOfKilled(killed, func(e pluginv1.Event) error {
		said++
		warning, ok := e.(pluginv1.Warning)
		testify.True(t, ok)
		testify.Contains(t, warning.Message, "the process a? (PID 7)")
		return nil
	}))
	testify.Equal(t, 10, said)
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
