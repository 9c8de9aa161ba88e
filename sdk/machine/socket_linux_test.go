package machine_test

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk/machine"
)

// TestListens: a socket counts only while a process listens on it.
func TestListens(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	files, err := machine.OpenFS(root)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, files.Close()) })
	assert.False(t, files.Listens(t.Context(), "/s"), "absent")
	_, err = files.Dial(t.Context(), "/s")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, files.WriteFile("/file", nil, 0o600))
	_, err = files.Dial(t.Context(), "/file")
	require.ErrorContains(t, err, "/file: it is not a socket")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(root, "s"), Net: "unix"})
	require.NoError(t, err)
	assert.True(t, files.Listens(t.Context(), "/s"))
	listener.SetUnlinkOnClose(false)
	require.NoError(t, listener.Close())
	// A program that another test starts holds the listener until its exec.
	assert.Eventually(t, func() bool { return !files.Listens(t.Context(), "/s") }, 10*time.Second, time.Millisecond, "without a listener")
	_, err = files.Dial(t.Context(), "/s")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// TestDirectoryOfACommand: Directory selects one of two programs of the same name.
func TestDirectoryOfACommand(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()
	for _, directory := range []string{first, second} {
		require.NoError(t, needs.WriteProgram(filepath.Join(directory, "program"), []byte("#!/bin/sh\necho "+directory+"\n")))
	}
	r := machine.NewRunner(first)
	for directory, want := range map[string]string{"": first, first: first, second: second} {
		result, err := r.Run(t.Context(), machine.Command{Name: "program", Directory: directory})
		require.NoError(t, err)
		assert.Equal(t, want+"\n", string(result.Stdout))
	}
	_, err := r.Run(t.Context(), machine.Command{Name: "program", Directory: t.TempDir()})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = r.Run(t.Context(), machine.Command{Name: "program", Directory: "bin"})
	require.ErrorIs(t, err, os.ErrInvalid)
}
