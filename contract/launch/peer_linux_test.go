package launch_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	testify "github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/require"
)

// usurped starts a process of another user that listens in its place.
func usurped(dir string) error {
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o777); err != nil { //nolint:gosec // that is the point
			return err
		}
	}
	c := exec.Command("/proc/self/exe", asStranger, "deaf")
	c.Stdout, c.Stderr, c.Dir = os.Stdout, os.Stderr, "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, Pdeathsig: syscall.SIGKILL}
	return c.Run()
}

// leak starts a process that keeps stdout and stderr of the plugin for a while.
func leak() error {
	c := exec.Command("/bin/sleep", "20")
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	return c.Start()
}

// TestKillDoesNotWaitForLeftovers: neither Kill nor Exited waits for another process that has the pipes of the plugin open.
func TestKillDoesNotWaitForLeftovers(t *testing.T) {
	require.Tool(t, "sleep")
	t.Parallel()
	p, err := launchStranger(t, "leaky")
	testify.NoError(t, err)
	began := time.Now()
	p.Kill()
	testify.Less(t, time.Since(began), 15*time.Second)
	testify.True(t, p.Exited())
}

// TestSocketOfAnotherUser: nothing is sent to a process of another user that listens in the plugin's place.
func TestSocketOfAnotherUser(t *testing.T) {
	require.Root(t)
	t.Parallel()
	testify.NoError(t, os.Chmod("/proc/self/exe", 0o755)) //nolint:gosec // the other user executes it
	words := &buffer{}
	p, err := launchStrangerTo(t, "usurped", words)
	testify.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = p.Describe(ctx, pluginv1.DescribeRequest{})
	var refused *launch.PeerError
	testify.ErrorAs(t, err, &refused)
	testify.Equal(t, launch.PeerError{UID: 65534}, *refused)
	_, err = p.Plan(ctx, pluginv1.Request{})
	testify.ErrorIs(t, err, pluginv1.ErrCrashed)
	p.Kill()
	testify.Empty(t, words.data.String())
}
