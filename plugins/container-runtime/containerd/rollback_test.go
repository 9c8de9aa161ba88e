package main

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/layout"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

const (
	registriesBefore = `{"registries":{
		"a.test":{"mirrors":[{"url":"https://m.test"}]},
		"b.test":{"mirrors":[{"url":"https://m.test","ca":"@CA@"}]}}}`
	registriesAfter = `{"registries":{
		"a.test":{"mirrors":[{"url":"https://n.test","ca":"@CA@"}]},
		"c.test":{"mirrors":[{"url":"https://n.test"}]}}`
)

// containerd17 is a machine with containerd 1.7, whose program understands every configuration.
func containerd17(t *testing.T) *machinetest.Fixture {
	t.Helper()
	f := containerdtest.Live(t, "/usr/bin/containerd", "1.7.24")
	f.Commands.OnFunc("containerd --config ...", func(_ context.Context, c machine.Command) (machine.Result, error) {
		text, err := f.Machine.FS.ReadFile(c.Args[1])
		return machine.Result{Stdout: text}, err
	})
	return f
}

// written17 puts the files of a document where containerd 1.7 reads them.
func written17(t *testing.T, m sdk.Machine, spec string) {
	t.Helper()
	d := wanted(t, "linux", spec)
	desired, violations := d.Settings(settings.Release{Major: 1, Minor: 7, Patch: 24})
	require.Empty(t, violations)
	r := settings.Release{Major: 1, Minor: 7, Patch: 24}
	now, err := layout.Read(m, settings.PathsOf(m.Target.OS).Config, r, nil)
	require.NoError(t, err)
	c, err := layout.Configure(m, r, now, desired)
	require.NoError(t, err)
	for _, file := range append(layout.RegistryFiles(d, settings.Release{Major: 1, Minor: 7, Patch: 24}), c.Main) {
		require.NoError(t, m.FS.WriteFile(file.Path, file.Content, file.Mode))
	}
}

// TestRegistriesAreRolledBack: when the daemon does not take the new configuration, the files of registries are the old
// ones as well: those changed, those added and those removed.
func TestRegistriesAreRolledBack(t *testing.T) {
	t.Parallel()
	f := containerd17(t)
	written17(t, f.Machine, registriesBefore)
	before := machinetest.Tree(t, f.Root)
	f.Services.Failures["restart containerd.service"] = errors.New("it does not start")
	p, err := plan(t.Context(), f.Machine, containerdtest.ContainerRuntime(t, registriesAfter+`,"logLevel":"warn"}`))
	require.NoError(t, err)
	require.NotEmpty(t, p.Changes)
	for _, change := range p.Changes {
		if err = change.Do(t.Context(), quiet{}); err != nil {
			break
		}
	}
	require.ErrorContains(t, err, "the old configuration was restored")
	assert.Equal(t, before, machinetest.Tree(t, f.Root))
}

// TestRegistriesAloneRestartNothing: containerd reads their files at every pull.
func TestRegistriesAloneRestartNothing(t *testing.T) {
	t.Parallel()
	f := containerd17(t)
	written17(t, f.Machine, registriesBefore)
	doc := containerdtest.ContainerRuntime(t, registriesAfter+"}")
	p, err := plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	for _, change := range p.Changes {
		assert.False(t, change.NeedsLive, change.ID)
		require.NoError(t, change.Do(t.Context(), quiet{}))
	}
	assert.Len(t, p.Changes, 6, "two of a.test, two of b.test and its directory, one of c.test")
	assert.Empty(t, f.Services.Calls())
	p, err = plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	assert.Empty(t, p.Changes)
}
