package launch_test

import (
	"context"
	"errors"
	"net"
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

// leaking passes every connection to a process that outlives the plugin.
type leaking struct{ net.Listener }

// Accept implements net.Listener.
func (l leaking) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	file, err := socket.File()
	if err != nil {
		return nil, err
	}
	c := exec.Command("/bin/sleep", "60")
	c.ExtraFiles = []*os.File{file}
	return conn, c.Start()
}

// TestCallEndsWithThePlugin: a call returns although another process has the connection of the plugin open.
func TestCallEndsWithThePlugin(t *testing.T) {
	require.Tool(t, "sleep")
	t.Parallel()
	p, err := launchStranger(t, "inherited")
	testify.NoError(t, err)
	defer p.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err = p.Describe(ctx, pluginv1.DescribeRequest{})
	testify.ErrorIs(t, err, pluginv1.ErrCrashed)
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
