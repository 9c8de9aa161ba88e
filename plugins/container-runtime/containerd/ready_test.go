package main

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestNotInstalled: a document of a kind that installs packages can resolve it, and none that names what it provides.
func TestNotInstalled(t *testing.T) {
	t.Parallel()
	_, err := plan(t.Context(), machinetest.New(t).Machine, containerdtest.ContainerRuntime(t, `{"logLevel":"info"}`))
	known := pluginv1.AsError(err)
	assert.Equal(t, pluginv1.CodePrecondition, known.Code)
	assert.False(t, known.Final)
	assert.Empty(t, known.Violations)

	image, _ := machinetest.NewImage(t)
	_, err = plan(t.Context(), image, containerdtest.ContainerRuntime(t, `{"logLevel":"info"}`))
	known = pluginv1.AsError(err)
	assert.False(t, known.Final, "a package of another document cures it")
	require.Len(t, known.Violations, 1)
	assert.Equal(t, "spec.providerConfig.version", known.Violations[0].Field)
}

// TestDocumentForAnotherSystem: a path of Windows is valid, but not on this machine.
func TestDocumentForAnotherSystem(t *testing.T) {
	t.Parallel()
	_, err := plan(t.Context(), machinetest.New(t).Machine, containerdtest.ContainerRuntime(t, `{"rootDir":"C:\\containerd"}`))
	known := pluginv1.AsError(err)
	assert.Equal(t, pluginv1.CodePrecondition, known.Code)
	assert.True(t, known.Final)
	require.Len(t, known.Violations, 1)
	assert.Equal(t, "spec.rootDir", known.Violations[0].Field)
}

// failingDisk cannot look for a program.
type failingDisk struct{ machine.Runner }

func (failingDisk) Find(string) (string, error) {
	return "", &os.PathError{Op: "stat", Path: "/usr/bin/containerd", Err: syscall.EIO}
}

// TestFailingDisk: a disk that fails is not a program that is missing.
func TestFailingDisk(t *testing.T) {
	t.Parallel()
	m := containerdtest.Live(t, "containerd", "1.7.24").Machine
	m.Commands = failingDisk{m.Commands}
	_, err := plan(t.Context(), m, containerdtest.ContainerRuntime(t, `{"logLevel":"info"}`))
	require.ErrorIs(t, err, syscall.EIO)
}

// TestFieldsOfPreconditions: each violation has the line of its field in the document.
func TestFieldsOfPreconditions(t *testing.T) {
	t.Parallel()
	f := containerdtest.Live(t, "/usr/bin/containerd", "v2.3.7")
	f.WriteFiles(t, map[string]string{
		"/etc/containerd/config.toml": "version = 3\nimports = ['conf.d/*.toml', 'z.toml']\n",
		"/etc/containerd/z.toml":      "version = 3\noom_score = 7\n[debug]\nlevel = 'warn'\n",
	})
	_, err := plan(t.Context(), f.Machine, containerdtest.ContainerRuntime(t, `{"logLevel":"info","oomScore":1}`))
	known := pluginv1.AsError(err)
	require.Len(t, known.Violations, 2)
	assert.ElementsMatch(t, []string{"spec.logLevel", "spec.oomScore"}, []string{known.Violations[0].Field, known.Violations[1].Field})
}
