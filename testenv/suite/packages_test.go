package suite

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
)

// TestTiers: a package is of the tiers that its files name, and of those that what it imports names.
func TestTiers(t *testing.T) {
	t.Parallel()
	all, err := Load("../..")
	require.NoError(t, err)
	byDir := map[string]Package{}
	for _, p := range all {
		byDir[p.Dir] = p
	}
	for dir, tiers := range map[string][]needs.TierName{
		"host/run":                      nil,
		"host/controller":               {needs.Controller},
		"testenv/reference":             {needs.Controller},
		"testenv/bootstrapdata/parsers": {needs.Controller},
		"testenv/law":                   nil,
		"testenv/noop":                  nil,
		"testenv/suite":                 {needs.System},
		"testenv/firstboot":             {needs.System},
		"testenv/stores":                {needs.Cluster, needs.System},
		"testenv/kubernetesnode":        {needs.Cluster, needs.System},
		"testenv/controller":            {needs.Cluster, needs.System},
		"testenv/infrastructure":        {needs.Cluster, needs.System},
		"testenv/vm":                    {needs.VM},
		"testenv/packages":              {needs.System, needs.VM},
	} {
		assert.Equal(t, tiers, byDir[dir].Tiers, dir)
	}
	assert.Equal(t, []string{"TestSysextImage"}, byDir["testenv/packages"].VM)
	assert.True(t, byDir["testenv/outside/motd"].Nested)
	assert.True(t, byDir["host/run"].Concurrent)
	assert.False(t, byDir["contract/naming"].Concurrent)
	assert.True(t, byDir["sdk/internal/activate"].First)
	assert.False(t, byDir["contract/naming"].First)
	for dir, compiled := range map[string]bool{"testenv/vm": false, "testenv/firstboot": false, "testenv/download": true} {
		assert.Equal(t, compiled, Options{Target: fast}.has(byDir[dir]), dir)
	}
	for _, p := range all {
		ran := 0
		for _, target := range []string{fast, "controller", "system", "cluster", "vm"} {
			if (Options{Target: target}).has(p) {
				ran++
			}
		}
		assert.NotZero(t, ran, "%s is in no target", p.Dir)
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for argument, want := range map[string]bool{
		"./host/run": true, "host/run/": true, "./host/...": true, "./...": true, "./host": false, "./host/runner": false, "./host/ru...": false,
	} {
		assert.Equal(t, want, matches(argument, "host/run"), argument)
	}
}
