package run

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/launch"
)

func TestRanked(t *testing.T) {
	t.Parallel()
	provider := func(name string, f pluginv1.Fitness, distributions ...string) *candidate {
		return &candidate{provider: name, plugin: &launch.Plugin{
			Description: pluginv1.Description{Fitness: f, Distributions: distributions},
		}}
	}
	mint := target.Target{OS: "linux", Distribution: "linuxmint", Like: []string{"ubuntu", "debian"}}
	for want, all := range map[string][]*candidate{
		"active installed absent": {
			provider("absent", pluginv1.FitnessAbsent, "linuxmint"), provider("active", pluginv1.FitnessActive), provider("installed", pluginv1.FitnessInstalled, "linuxmint"),
		},
		"own first second generic foreign": {
			provider("foreign", pluginv1.FitnessActive, "fedora"), provider("generic", pluginv1.FitnessActive), provider("second", pluginv1.FitnessActive, "debian"),
			provider("own", pluginv1.FitnessActive, "fedora", "linuxmint"), provider("first", pluginv1.FitnessActive, "ubuntu"),
		},
		"a=b c": {
			provider("a", pluginv1.FitnessActive, "debian"), provider("c", pluginv1.FitnessInstalled, "debian"), provider("b", pluginv1.FitnessActive, "debian", "fedora"),
		},
	} {
		var got []string
		for _, rank := range ranked(all, mint) {
			var names []string
			for _, c := range rank {
				names = append(names, c.provider)
			}
			got = append(got, strings.Join(names, "="))
		}
		assert.Equal(t, want, strings.Join(got, " "))
	}
}
